"""OpenPBS (PBS Professional) and Torque: the lines of a script for their qsub.

Sources: qsub(1B) and pbs_resources(7B) of OpenPBS 23.06, where it was seen that PBS copies a job's output at its end;
qsub(1B) and the sources of Torque 6.1.
"""

from __future__ import annotations

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
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import request_values
from toolkit.scheduler.values import NO_TIME_LIMIT, clock_time

if TYPE_CHECKING:
    from toolkit.jobs.dialects.words import Words
    from toolkit.jobs.model import Directive, Job
    from toolkit.scheduler.values import Array

_OWN = {
    **LOG_OPTIONS,
    "k": LOG_OPTIONS["o"],
    "N": "use --job-name",
    "S": "the script needs bash",
    "C": "the lines of the script begin with #PBS",
    "I": "a script is no interactive job",
    "d": "the job runs in the directory where you submit it: change to that directory first",
    "w": "the job runs in the directory where you submit it: change to that directory first",
    "J": "use --array",
    "t": "use --array",
    "A": "use --account",
    "q": "use --partition",
}
_NOT_IN_REQUESTS = owned_in_requests(_OWN)
_LONGEST_LIST = 2000  # characters; qsub of older Torques reads lines of 2048 (cmds.h)
_REQUEST = "use --request '-l …', which replaces the lines of ctk"
_OWN_RESOURCES = {
    "walltime": "use --time",
    "select": _REQUEST,
    "place": _REQUEST,
    "nodes": _REQUEST,
    "ncpus": "use --cpus-per-task",
    "ngpus": "use --gpus",
    "mem": "use --mem",
}


class Pbs:
    """The language of the qsub of OpenPBS, or of Torque."""

    def __init__(self, own_words: Words) -> None:
        self.words = own_words

    @property
    def _torque(self) -> bool:
        return self.words.scheduler is Scheduler.TORQUE

    def check(self, job: Job) -> None:
        title = self.words.title
        site = checked_site_lines(job, title, _owned)
        if job.time == NO_TIME_LIMIT and "time" not in site.keys:
            raise unsupported(
                "--time UNLIMITED", title, "it has no word for it", "Omit --time: the queue's own limit applies."
            )
        if job.partition is not None and "," in job.partition and "partition" not in site.keys:
            first = job.partition.partition(",")[0]
            raise unsupported(f"--partition {job.partition}", title, "a job has one queue", f"--partition {first}")
        if job.gpus is not None and job.gpus.count and job.gpus.kind and not {"gpus", "gpu_type"} & site.keys:
            line = "nodes={nodes}:ppn={node_cores}:gpus={count}:{type}"
            if not self._torque:
                line = "select={nodes}:ncpus={node_cores}:ngpus={count}:gpu_type={type}"
            raise gpu_type_unsupported(job, title, f"-l {line}")
        if self._torque:
            _check_torque(job, site.keys)
        elif job.array is not None:
            _check_array(job)

    def check_directory(self, directory: str) -> str:
        return directory

    def parse_directive(self, text: str) -> Directive:
        return parse_option(text, _OWN, _OWN_RESOURCES)

    def directives(self, job: Job) -> list[str]:
        """The options of `job`. None names a file for the output: PBS copies it to the submit directory."""
        site = checked_site_lines(job, self.words.title, _owned)
        lines = [f"-N {job.name}", "-j oe", "-S /bin/bash"]
        if job.array is not None:
            lines.append(f"-t {_without_steps(job.array)}" if self._torque else f"-J {job.array}")
        kind = None if self._torque else _gpu_type(job)
        lines += _torque_resources(job, site.keys) if self._torque else _select(job, site.keys, kind)
        if job.time is not None and "time" not in site.keys:
            lines.append(f"-l walltime={clock_time(job.time)}")
        if job.partition is not None and "partition" not in site.keys:
            lines.append(f"-q {job.partition}")
        if job.account is not None and "account" not in site.keys:
            lines.append(f"-A {job.account}")
        if not self._torque:
            lines += _umask(job)
        own = [line for line in site.lines if line != kind]
        return [*lines, *own, *inherited_variables(job), *map(option, job.directives)]

    def number(self, job: Job) -> str:
        """Lines that set `job_name`, `job`, the number of the log, and `spooled`, that of the file that PBS copies.

        Torque puts the index of a task behind the name of the job (job_func.c of 6.1).
        """
        if job.array is None:
            return "job_name=$PBS_JOBNAME\njob=${PBS_JOBID%%.*}\nspooled=$job"
        name, index, sign = "$PBS_JOBNAME", "$PBS_ARRAY_INDEX", "."
        if self._torque:
            name, index, sign = '${PBS_JOBNAME%"-$PBS_ARRAYID"}', "$PBS_ARRAYID", "-"
        number = "job=${PBS_JOBID%%[!0-9]*}"
        return f"job_name={name}\n{number}\nspooled=$job{sign}{index}\njob=${{job}}_{index}"

    def launcher(self, job: Job) -> tuple[str, ...]:
        return () if job.tasks == 1 else ("launch", str(job.tasks_per_node or 1))

    def forward(self, job: Job) -> str:  # noqa: ARG002 - of the protocol
        return TO_PROGRAM


OPENPBS: Dialect = Pbs(words.OPENPBS)
TORQUE: Dialect = Pbs(words.TORQUE)


def _owned(word: str) -> str | None:
    """What to use instead of an option in a request template that ctk writes itself; qsub takes `-ofile` for `-o`."""
    return _NOT_IN_REQUESTS.get(word[1:2])


def _umask(job: Job) -> list[str]:
    """The umask of the job, which is 077 otherwise, whatever that of qsub (start_exec.c of OpenPBS 23.06)."""
    given = any(directive.name == "W" and "umask=" in (directive.value or "") for directive in job.directives)
    return [] if job.umask is None or given else [f"-W umask={job.umask:04o}"]


def _gpu_type(job: Job) -> str | None:
    """The site's line for the type of the GPUs: a resource of the chunk, which no line beside `-l select` may name."""
    template, values = job.requests.gpu_type, request_values(job)
    if template is None or job.gpus is None or not job.gpus.count or not template.names <= values.keys():
        return None
    line = template.fill(values)
    return line if line.startswith("-l ") else None


def _select(job: Job, covered: frozenset[str], kind: str | None) -> list[str]:
    """`-l select=NODES:ncpus=…`: one chunk for each node, and each on a node of its own."""
    nodes, processes, cores = job.nodes or 1, job.tasks_per_node or 1, job.cpus_per_task or 1
    if "nodes" in covered:
        return []
    parts = [f"select={nodes}", f"ncpus={processes * cores}"]
    if job.gpus is not None and job.gpus.count and "gpus" not in covered:
        parts.append(f"ngpus={job.gpus.count // nodes}")
        parts += [kind.removeprefix("-l ")] if kind else []
    if job.mem is not None and "mem" not in covered:
        parts.append(f"mem={job.mem.lower()}b")
    if job.tasks > 1:
        parts.append(f"mpiprocs={processes}")
    return [f"-l {':'.join(parts)}", *(["-l place=scatter"] if nodes > 1 else [])]


def _torque_resources(job: Job, covered: frozenset[str]) -> list[str]:
    lines = []
    if "nodes" not in covered:
        parts = [f"nodes={job.nodes or 1}", f"ppn={(job.tasks_per_node or 1) * (job.cpus_per_task or 1)}"]
        if job.gpus is not None and job.gpus.count and "gpus" not in covered:
            parts.append(f"gpus={job.gpus.count}")
        lines.append(f"-l {':'.join(parts)}")
    if job.mem is not None and "mem" not in covered:
        lines.append(f"-l mem={job.mem.lower()}b")
    return lines


def _without_steps(array: Array) -> str:
    """The array as Torque has it: numbers and ranges, and no steps (array_func.c of 6.1 refuses `0-9:2`)."""
    parts = [
        part
        for some in array.ranges
        for part in ([str(some)] if some.step == 1 else map(str, range(some.first, some.last + 1, some.step)))
    ]
    return ",".join(parts) + (f"%{array.limit}" if array.limit else "")


def _check_torque(job: Job, covered: frozenset[str]) -> None:
    nodes, title = job.nodes or 1, words.TORQUE.title
    if job.array is not None and len(_without_steps(job.array)) > _LONGEST_LIST:
        raise unsupported(
            f"--array {job.array}",
            title,
            "it knows no steps, and the list of the task numbers is too long for a line",
            "An array without a step, and multiply PBS_ARRAYID in the program.",
        )
    if nodes > 1 and job.gpus is not None and job.gpus.count and "gpus" not in covered:
        raise unsupported(
            f"--gpus {job.gpus} on --nodes {nodes}",
            title,
            "what `gpus=` means on several nodes depends on the scheduler of the site",
            "--nodes 1, or your site's own request: --request '-l nodes={nodes}:ppn={node_cores}:gpus={count}'",
        )
    if nodes > 1 and job.mem is not None and "mem" not in covered:
        raise unsupported(
            f"--mem {job.mem} on --nodes {nodes}",
            title,
            "its `mem` is that of the whole job, not of a node",
            "--nodes 1, or the memory of each process: --directive='-l pmem=4gb'",
        )


def _check_array(job: Job) -> None:
    array, title = job.array, words.OPENPBS.title
    assert array is not None  # noqa: S101 - the caller has asked
    if len(array.ranges) > 1:
        raise unsupported(
            f"--array {array}",
            title,
            "an array is one range",
            f"Submit a script for each range, the first with --array {array.ranges[0]}",
        )
    if array.ranges[0].first + array.ranges[0].step > array.ranges[0].last:
        raise unsupported(
            f"--array {array}", title, "an array has at least two tasks", "Omit --array, or give a longer range."
        )
