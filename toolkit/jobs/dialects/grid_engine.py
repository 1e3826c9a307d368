"""Grid Engine (Son of Grid Engine, Univa, Altair): the lines of a script for its qsub.

Sources: qsub(1), queue_conf(5), sge_pe(5), complex(5) of 8.1.9.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit.jobs.dialects import words
from toolkit.jobs.dialects.dialect import TO_PROGRAM, Dialect
from toolkit.jobs.dialects.qsub import (
    LOG_OPTIONS,
    checked_site_lines,
    gpu_type_unsupported,
    inherited_variables,
    option,
    owned_in_requests,
    parse_option,
    unsupported,
)
from toolkit.scheduler.values import NO_TIME_LIMIT, clock_time, memory_mib
from toolkit.support.errors import WrongInput
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.jobs.model import Directive, Job

_PSEUDO_VARIABLE = re.compile(r"\$(?:HOME|USER|JOB_ID|JOB_NAME|HOSTNAME|TASK_ID)")  # qsub(1), -o
_TITLE = words.GRID_ENGINE.title
_OWN = {
    **LOG_OPTIONS,
    "N": "use --job-name",
    "S": "the script needs bash",
    "C": "the lines of the script begin with #$",
    "b": "the script is no program",
    "cwd": "the job runs in the directory where you submit it",
    "wd": "the job runs in the directory where you submit it: change to that directory first",
    "t": "use --array",
    "tc": "use --array 1-100%8",
    "pe": "use --cpus-per-task, or --request '-pe NAME {slots}'",
    "P": "use --account",
    "q": "use --partition",
    "sync": "ctk does not wait for a job",
    "terse": "ctk reads the job's number from what qsub prints",
}
_NOT_IN_REQUESTS = {**owned_in_requests(_OWN), "@": "write the options themselves"}
_OWN_RESOURCES = {"h_rt": "use --time"}


class GridEngine:
    """The language of Grid Engine's qsub."""

    words = words.GRID_ENGINE

    def check(self, job: Job) -> None:
        if job.name[0].isdigit():
            raise unsupported(
                f"--job-name {job.name}", _TITLE, "a name begins with a letter", f"For example: --job-name x{job.name}"
            )
        site = checked_site_lines(job, _TITLE, _owned)
        if job.array is not None:
            _check_array(job)
        if (job.nodes or 1) > 1 and "nodes" not in site.keys:
            raise unsupported(
                f"--nodes {job.nodes}",
                _TITLE,
                "it counts slots, and a parallel environment of the site decides on how many nodes they are",
                "Your site's own request, for example: --request '-pe mpi {slots}', --request '-l node_f={nodes}'",
            )
        if job.mem is not None and "mem" not in site.keys:
            slots = (job.tasks_per_node or 1) * (job.cpus_per_task or 1)
            each = -(-memory_mib(job.mem) // slots)
            raise unsupported(
                f"--mem {job.mem}",
                _TITLE,
                "its limits are for each slot, not for a node",
                f"--directive='-l h_vmem={each}M' (for each of {count(slots, 'slot')}), with your site's own name: "
                "h_vmem, mem_free, s_vmem.",
            )
        if job.gpus is not None and job.gpus.count and job.gpus.kind and "gpus" not in site.keys:
            raise gpu_type_unsupported(job, _TITLE, "-l {type}={count}")

    def check_directory(self, directory: str) -> str:
        """Return the directory. Raises WrongInput if Grid Engine would read a variable in its name.

        It expands `$USER` and its like in the path, cannot change to the other directory, and the job waits in Eqw for
        ever (seen with 8.1.9). Quotes, blanks, backslashes, colons and letters of any language do no harm.
        """
        if _PSEUDO_VARIABLE.search(directory) or not directory.isprintable():
            raise WrongInput(
                f"Grid Engine cannot run a job in a directory with a variable in its name: {directory!r}",
                fix="Rename the directory, or submit from another one.",
            )
        return directory

    def parse_directive(self, text: str) -> Directive:
        return parse_option(text, _OWN, _OWN_RESOURCES)

    def directives(self, job: Job) -> list[str]:
        """The options of `job`. `-o` is a file of the submit directory: Grid Engine opens it there."""
        site = checked_site_lines(job, _TITLE, _owned)
        lines = ["-cwd", "-j y", "-S /bin/bash", f"-N {job.name}"]
        lines += [f"-o $JOB_NAME-$JOB_ID{'_$TASK_ID' if job.array else ''}.log"]
        if job.array is not None:
            lines += [f"-t {job.array.ranges[0]}"] + ([f"-tc {job.array.limit}"] if job.array.limit else [])
        slots = (job.tasks_per_node or 1) * (job.cpus_per_task or 1)
        if slots > 1 and "cpus_per_task" not in site.keys:
            lines.append(f"-pe smp {slots}")
        if job.gpus is not None and job.gpus.count and "gpus" not in site.keys:
            lines.append(f"-l gpu={job.gpus.count}")
        if job.time is not None and "time" not in site.keys:
            lines.append(f"-l h_rt={'INFINITY' if job.time == NO_TIME_LIMIT else clock_time(job.time)}")
        if job.partition is not None and "partition" not in site.keys:
            lines.append(f"-q {job.partition}")
        if job.account is not None and "account" not in site.keys:
            lines.append(f"-P {job.account}")
        return [*lines, *site.lines, *inherited_variables(job), *map(option, job.directives)]

    def number(self, job: Job) -> str:
        return "${JOB_ID}_$SGE_TASK_ID" if job.array else "$JOB_ID"

    def launcher(self, job: Job) -> tuple[str, ...]:
        return () if job.tasks == 1 else ("launch", str(job.tasks_per_node or 1))

    def forward(self, job: Job) -> str:  # noqa: ARG002 - of the protocol
        return TO_PROGRAM


GRID_ENGINE: Dialect = GridEngine()


def _owned(word: str) -> str | None:
    """What to use instead of an option in a request template that ctk writes itself."""
    return _NOT_IN_REQUESTS.get(word[1:])


def _check_array(job: Job) -> None:
    array = job.array
    assert array is not None  # noqa: S101 - the caller has asked
    if len(array.ranges) > 1:
        raise unsupported(
            f"--array {array}",
            _TITLE,
            "an array is one range",
            f"Submit a script for each range, the first with --array {array.ranges[0]}",
        )
    if array.first < 1:
        last = array.ranges[0].last + 1
        raise unsupported(
            f"--array {array}",
            _TITLE,
            "task numbers begin at 1",
            f"--array 1-{last}, and subtract 1 from SGE_TASK_ID in the program.",
        )
