"""Slurm: the lines, the launcher and the signals of a script for sbatch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.jobs.dialects import words
from toolkit.jobs.dialects.dialect import TO_PROGRAM, Dialect
from toolkit.jobs.dialects.site import site_lines
from toolkit.jobs.model import SIGNALS, Directive
from toolkit.scheduler.requests import request_values
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import NO_TIME_LIMIT, refuse
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from toolkit.jobs.model import Job

_SIGNAL = re.compile(rf"(?:[BR]{{1,2}}:)?(?:SIG)?(?:{'|'.join(SIGNALS)})(?:@[0-9]{{1,5}})?")  # sbatch(1), --signal
_DIRECTIVE = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?:=(?P<value>.+))?")

# Options of sbatch that ctk writes itself, and what to use instead.
_OWN_DIRECTIVES = {
    **{option.name: f"use --{option.name}" for option in OPTIONS.values()},
    "chdir": "the job runs in the directory where you submit it: change to that directory first",
    "error": "errors go to the job's log, logs/NAME-ID.log",
    "job-name": "use --job-name",
    "ntasks": "use --nodes and --ntasks-per-node",
    "open-mode": "ctk always appends to the log of a requeued job",
    "output": "the log is always logs/NAME-ID.log",
    "wrap": "give the command after --",
}
# Those that no request template may set either, with their short names.
_NOT_IN_REQUESTS = {
    **{name: _OWN_DIRECTIVES[name] for name in ("array", "chdir", "error", "job-name", "open-mode", "output", "wrap")},
    **dict.fromkeys(("export", "export-file"), "use --env"),
}
_SHORT = {"a": "array", "D": "chdir", "e": "error", "J": "job-name", "o": "output"}


class Slurm:
    """The language of sbatch."""

    words = words.SLURM

    def check(self, job: Job) -> None:
        """Slurm expresses every job; a request of its site may not. Raises WrongInput then."""
        site_lines(job, request_values(job), _owned, separate=True)

    def check_directory(self, directory: str) -> str:
        """Return the directory. Raises WrongInput if Slurm cannot open a log there.

        It takes a backslash anywhere in the path for its own escape and then expands no `%j` (sbatch(1), filename
        pattern), and the job would end as 0:53 without a log. A path with `%` has to be written into an `#SBATCH` line,
        which knows no way to quote a quotation mark or a control character.
        """
        fix = "Rename the directory, or submit from another one."
        if "\\" in directory:
            raise WrongInput(
                f"Slurm cannot open a log in a directory with a backslash in its name: {directory}", fix=fix
            )
        if "%" in directory and (not directory.isprintable() or any(character in "\"'" for character in directory)):
            raise WrongInput(
                f"Slurm cannot open a log in a directory with both a % and a quote: {directory!r}", fix=fix
            )
        return directory

    def parse_directive(self, text: str) -> Directive:
        """Any other option of sbatch, `--name=value` or `--name`. What ctk writes is refused, abbreviated too."""
        match = _DIRECTIVE.fullmatch(text)
        if match is None:
            refuse("--directive", text, "--name=value or --name", fix="For example: --directive=--constraint=a100")
        name, content = match["name"], match["value"]
        # sbatch reads its options with getopt_long, which completes `--out` to `--output`.
        own = next((own for own in sorted(_OWN_DIRECTIVES) if own.startswith(name)), None)
        if own is not None:
            raise WrongInput(
                f"--directive {text!r}: ctk writes --{own} itself", fix=f"Instead: {_OWN_DIRECTIVES[own]}."
            )
        if content is not None:
            one_line(content, f"--directive --{name}")
            if not content.isascii() or any(character in "\"'\\" for character in content):
                refuse(f"--directive --{name}", content, "plain ASCII without quotes and backslashes")
        if name == "signal" and not _SIGNAL.fullmatch(content or ""):
            refuse(
                "--directive --signal",
                content,
                f"one of {', '.join(SIGNALS)}, which the script passes on, and the seconds before the time limit",
                fix="For example: --directive=--signal=USR1@300",
            )
        return Directive(name, content)

    def directives(self, job: Job) -> list[str]:
        """The options of `job` in the order of the resources; those that the site has templates for come behind."""
        site = site_lines(job, request_values(job), _owned, separate=True)
        options = {
            "job-name": job.name,
            "output": _output(job),
            "open-mode": "append",
            **{option.name: None if key in site.keys else getattr(job, key) for key, option in OPTIONS.items()},
        }
        if "gpus" not in site.keys:
            options["gpus"] = job.gpus if job.gpus and job.gpus.count else None
        if "time" not in site.keys:
            options["time"] = None if job.time is None else _time(job.time)
        own = [_option(name, str(value)) for name, value in options.items() if value is not None]
        others = [_option(directive.name, _value(directive, job)) for directive in job.directives]
        return [*own, *site.lines, *others]

    def number(self, job: Job) -> str:
        return "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if job.array else "$SLURM_JOB_ID"

    def launcher(self, job: Job) -> tuple[str, ...]:
        """A batch script runs once, on the first node; srun starts one process for each task on its own node.

        Since Slurm 22.05 srun no longer takes --cpus-per-task from the job around it (RELEASE_NOTES of 22.05). The
        tasks get the script's environment also where the job was submitted with --export=NONE.
        """
        if job.tasks == 1:
            return ()
        cores = [f"--cpus-per-task={job.cpus_per_task}"] if job.cpus_per_task else []
        return ("srun", "--export=ALL", *cores)

    def forward(self, job: Job) -> str:
        """srun ends all tasks at SIGHUP and at a second SIGINT within a second (seen with 22.05): there scancel signals
        them. At SIGTERM it ends the step in order; where the whole job ends, Slurm has signalled the tasks itself.
        """
        if job.tasks == 1:
            return TO_PROGRAM
        return f'if [ "$1" = TERM ]; then {TO_PROGRAM}; else scancel --signal="$1" "$job"; fi'


SLURM: Dialect = Slurm()


def _owned(word: str) -> str | None:
    """What to use instead of an option in a request template that ctk writes itself, also abbreviated."""
    if not word.startswith("--"):
        return _NOT_IN_REQUESTS.get(_SHORT.get(word[1:2], ""))
    name = word[2:].partition("=")[0]
    return next((instead for own, instead in _NOT_IN_REQUESTS.items() if own.startswith(name)), None)


def _output(job: Job) -> str:
    # %A and %a are the numbers of the array and of the task (sbatch(1), filename pattern).
    name = "%x-%A_%a.log" if job.array else "%x-%j.log"
    # Slurm puts the directory in front of a relative name and expands patterns in both (seen with 22.05).
    return f"{job.directory.replace('%', '%%')}/{name}" if "%" in job.directory else name


def _value(directive: Directive, job: Job) -> str | None:
    """`--signal=USR1@90` goes to job steps only: without srun there is none, hence `B:`, the batch shell."""
    value = directive.value
    if directive.name != "signal" or value is None or job.tasks > 1:
        return value
    flags, colon, rest = value.rpartition(":")
    return value if "B" in flags else f"B{flags}{colon or ':'}{rest}"


def _option(name: str, value: str | None) -> str:
    if value is None:
        return f"--{name}"
    # sbatch parts such a line at blanks and ends it at `#`, except in quotes.
    parted = any(character in " #" for character in value)
    return f'--{name}="{value}"' if parted else f"--{name}={value}"


def _time(seconds: int) -> str:
    if seconds == NO_TIME_LIMIT:
        return "UNLIMITED"
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"
