"""What a user may write for a job besides its resources: name, binds, other options of sbatch, directory."""

from __future__ import annotations

import re

from toolkit.jobs.model import SIGNALS, Directive
from toolkit.scheduler.resources import OPTIONS
from toolkit.scheduler.values import refuse
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
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


def check_name(value: str, option: str = "--job-name") -> str:
    """A job's name. It becomes part of the log's file name: Slurm copies any character there, `/` and newline too."""
    if not _NAME.fullmatch(value):
        refuse(
            option,
            value,
            "at most 128 letters, digits, dots, dashes and underscores, not starting with a dot or a dash",
            fix="For example: --job-name keras-bert.lr-0.1",
        )
    return value


def name_for(text: str) -> str:
    """The job's name nearest to `text`, which may be any file's: `my image` -> `my-image`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:128] or "job"


def check_bind(value: str, option: str = "--bind") -> str:
    """A directory that the container is to see: SRC, SRC:DST or SRC:DST:ro."""
    one_line(value, option)
    source, *rest = value.split(":")
    # The runtime reads a comma as the beginning of the next bind.
    good = bool(source) and not source.startswith("-") and "," not in value and len(rest) <= 2
    good = good and all(part.startswith("/") for part in rest[:1]) and all(part in ("ro", "rw") for part in rest[1:])
    if not good:
        refuse(
            option,
            value,
            "SRC, SRC:DST or SRC:DST:ro, with an absolute DST and no comma",
            fix="For example: --bind /scratch/data:/data:ro; repeat --bind for several directories.",
        )
    return value


def parse_directive(value: str) -> Directive:
    """Any other option of sbatch, `--name=value` or `--name`. What ctk writes itself is refused, abbreviated too."""
    match = _DIRECTIVE.fullmatch(value)
    if match is None:
        refuse("--directive", value, "--name=value or --name", fix="For example: --directive=--constraint=a100")
    name, content = match["name"], match["value"]
    # sbatch reads its options with getopt_long, which completes `--out` to `--output`.
    own = next((own for own in sorted(_OWN_DIRECTIVES) if own.startswith(name)), None)
    if own is not None:
        raise WrongInput(f"--directive {value!r}: ctk writes --{own} itself", fix=f"Instead: {_OWN_DIRECTIVES[own]}.")
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


def check_submission_directory(directory: str) -> str:
    """The directory that the job is submitted from, and that Slurm opens the job's log in.

    Raises WrongInput if Slurm cannot: it takes a backslash anywhere in the path for its own escape and then expands
    no `%j` (sbatch(1), filename pattern), and the job would end as 0:53 without a log. A path with `%` has to be
    written into an `#SBATCH` line, which knows no way to quote a quotation mark or a control character.
    """
    fix = "Rename the directory, or submit from another one."
    if "\\" in directory:
        raise WrongInput(f"Slurm cannot open a log in a directory with a backslash in its name: {directory}", fix=fix)
    if "%" in directory and (not directory.isprintable() or any(character in "\"'" for character in directory)):
        raise WrongInput(f"Slurm cannot open a log in a directory with both a % and a quote: {directory!r}", fix=fix)
    return directory
