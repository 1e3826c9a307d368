"""Grid Engine's text: qstat, qstat -j, qacct and qhost (8.1.9; the forks print the same lines)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from toolkit.scheduler.numbers import decimal, leading, whole
from toolkit.scheduler.reasons import reason_words
from toolkit.scheduler.states import HostFacts, JobState, State

_ROW = re.compile(
    r"\s*(?P<job>\d+)\s+[\d.]+\s+(?P<name>.*?)\s+(?P<user>\S+)\s+(?P<state>[a-zA-Z]+)\s+"
    r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d\s*(?P<rest>.*)"
)
_ERROR = re.compile(r"error reason\s+(?P<task>\d+)")
_SUFFIXES = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_LIMIT, _KILLED = 37, 100
_HOST_FAILED = (21, 22)


@dataclass(frozen=True, slots=True)
class JobDetails:
    """`qstat -j` of one job: its fields as printed (`hard resource_list`, `parallel environment`, `cwd`, …), and why
    tasks are in the error state, by the number of the task (1 for a job that is no array).
    """

    job: str
    fields: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def parse_qstat(text: str, details: dict[str, JobDetails] | None = None) -> tuple[JobState, ...]:
    """The lines of plain `qstat`, one for each running task, and one for the waiting tasks of an array together.

    `details` (parse_details) give the reason of jobs in the state `Eqw`.
    """
    found = []
    for line in text.splitlines():
        match = _ROW.fullmatch(line)
        if match is None:
            continue
        queue, tasks = _queue_and_tasks(match["rest"])
        job = f"{match['job']}.{tasks}" if tasks else match["job"]
        errors = details[match["job"]].errors if details and match["job"] in details else {}
        state, reason = _state(match["state"])
        if "E" in match["state"]:
            reason = errors.get(tasks or "1") or next(iter(errors.values()), reason)
        found.append(JobState(job, state, match["state"], reason, nodes=queue.rpartition("@")[2]))
    return tuple(found)


def _queue_and_tasks(rest: str) -> tuple[str, str]:
    """Queue instance and task numbers of the end of a line: `all.q@n1 2 3`, `all.q@n1 2`, `1 1-5:1`, `1`."""
    words = rest.split()
    queue = words.pop(0) if words and not words[0].isdigit() else ""
    return queue, words[1] if len(words) > 1 else ""


def _state(letters: str) -> tuple[State, str]:
    """The state that sge_status(5) gives these letters. An error state stays for ever and the job does not run."""
    if "E" in letters:
        return State.FAILED, "Grid Engine could not start it; `qstat -j JOB` says why, `qmod -cj JOB` tries again"
    if "d" in letters:
        return State.CANCELLED, "it is being deleted"
    if "h" in letters and "w" in letters:
        return State.HELD, "held by its user or an administrator, or waits for another job"
    if "w" in letters:
        return State.PENDING, ""
    if set(letters) & set("sST"):
        return State.RUNNING, "suspended"
    return State.RUNNING, ""


def parse_details(text: str) -> dict[str, JobDetails]:
    """The jobs of `qstat -j`, by their number; empty for a job that Grid Engine no longer knows."""
    found: dict[str, JobDetails] = {}
    current: JobDetails | None = None
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon or line.startswith((" ", "\t")):
            continue
        key, value = key.strip(), value.strip()
        if key == "job_number":
            current = found[value] = JobDetails(value)
        elif current is not None and (match := _ERROR.fullmatch(key)):
            current.errors[match["task"]] = _without_origin(value)
        elif current is not None:
            current.fields.setdefault(re.sub(r"\s+", " ", key), value)
    return found


def _without_origin(text: str) -> str:
    """The message of `11/21/2026 03:08:50 [1001:17569]: error: can't open output file …`."""
    return re.sub(r"^[\d/]+ [\d:]+ \[\d+:\d+\]: (?:error: )?", "", text)


def parse_qacct(text: str) -> tuple[JobState, ...]:
    """The states of `qacct -j`, one for each task. Grid Engine writes a record some seconds after the end of a job.

    It writes one for each attempt to run it: the last one counts.
    """
    found: dict[str, JobState] = {}
    for block in re.split(r"^=+$", text, flags=re.MULTILINE):
        fields = {
            name: value.strip() for name, _, value in (line.partition(" ") for line in block.splitlines()) if name
        }
        if fields.get("jobnumber", "").isdigit():
            state = _finished(fields)
            found[state.job] = state
    return tuple(found.values())


def _finished(fields: dict[str, str]) -> JobState:
    task = fields.get("taskid", "undefined")
    job = f"{fields['jobnumber']}.{task}" if task.isdigit() else fields["jobnumber"]
    code, status = leading(fields.get("failed")) or 0, leading(fields.get("exit_status")) or 0
    signal = status - 128 if 128 < status <= 128 + 64 else None
    own = fields.get("failed", "")
    reason = reason_words("grid-engine", str(code))
    if reason == str(code):
        reason = own.partition(":")[2].strip() or own
    if code == _LIMIT:
        state = State.TIMED_OUT if "h_rt" in own or "h_vmem" not in own else State.OUT_OF_MEMORY
    elif code == _KILLED and signal == 9:
        state, reason = State.CANCELLED, "ended by SIGKILL: by qdel, or by the node itself (memory)"
    elif code in _HOST_FAILED:
        state = State.NODE_FAILED
    elif code:
        state = State.FAILED
    else:
        state = State.FAILED if status else State.COMPLETED
        reason = "its script ended with a nonzero exit status" if status else ""
    return JobState(job, state, own, reason, status, signal, fields.get("hostname", ""))


def parse_qhost(text: str) -> tuple[HostFacts, ...]:
    """The hosts of `qhost -F -q` or `qhost -F`: name, cores, memory, GPUs (a resource `gpu` or `ngpus`), and queues.

    A host that does not answer has `-` in place of its values.
    """
    found: list[HostFacts] = []
    for line in text.splitlines():
        words = line.split()
        if not words or line.startswith("-") or words[0] in ("HOSTNAME", "global"):
            continue
        if not line.startswith(" "):
            found.append(_host(words))
        elif found and (match := re.search(r"\b[a-zA-Z]{2}:(?:n?gpus?|gpu_count)=(\S+)", line)):
            found[-1] = _with(found[-1], gpus=int(decimal(match[1]) or 0))
        elif found and len(words) >= 3 and re.fullmatch(r"[BIPC]+", words[1]):
            found[-1] = _with(found[-1], queue=words[0])
    return tuple(found)


def _with(host: HostFacts, *, gpus: int | None = None, queue: str | None = None) -> HostFacts:
    return HostFacts(
        *(host.name, host.cpus, host.memory, host.gpus if gpus is None else gpus, host.gpu_type, host.usable),
        (*host.partitions, *([queue] if queue else [])),
    )


def _host(words: list[str]) -> HostFacts:
    # HOSTNAME ARCH NCPU [NSOC NCOR NTHR] LOAD MEMTOT MEMUSE SWAPTO SWAPUS
    memory = words[-4] if len(words) >= 8 else "-"
    cpus = words[2] if len(words) > 2 else "-"
    load = words[-5] if len(words) >= 8 else "-"
    return HostFacts(words[0], whole(cpus) or 0, _mebibytes(memory), usable=load != "-")


def _mebibytes(text: str) -> int:
    return int((decimal(text[:-1]) or 0) * _SUFFIXES.get(text[-1:], 0))


def submitted_job(text: str) -> str | None:
    """The job number of `qsub -terse` (`12`, `12.1-5:1`); None if it printed none."""
    match = re.fullmatch(r"(\d+)(?:\.\d+-\d+:\d+)?", text.strip().splitlines()[-1] if text.strip() else "")
    return match[1] if match else None


def requested(details: JobDetails) -> dict[str, str]:
    """The resources of `hard resource_list` (`h_rt=600,s_gpu=1`), and `pe` with its range (`smp 2`)."""
    found = dict(
        part.partition("=")[::2] for part in details.fields.get("hard resource_list", "").split(",") if "=" in part
    )
    environment = re.match(r"(\S+) range: (\S+)", details.fields.get("parallel environment", ""))
    return {**found, **({"pe": f"{environment[1]} {environment[2]}"} if environment else {})}
