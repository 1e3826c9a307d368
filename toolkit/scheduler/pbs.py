"""What PBS prints: OpenPBS's JSON of qstat, and Torque's XML of qstat and pbsnodes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from toolkit.scheduler.numbers import leading
from toolkit.scheduler.reasons import reason_words
from toolkit.scheduler.states import HostFacts, JobState, State, join_reasons
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

_WAITING = {"Q": State.PENDING, "W": State.PENDING, "T": State.PENDING, "M": State.PENDING, "H": State.HELD}
_RUNNING = {"R": "", "B": "", "E": "it is ending", "S": "suspended", "U": "suspended: the workstation is in use"}
_ENDED = ("F", "X", "C")  # C is Torque's
_LIMITS = {
    "openpbs": {-29: State.TIMED_OUT, -28: State.TIMED_OUT, -27: State.OUT_OF_MEMORY, -26: State.OUT_OF_MEMORY},
    "torque": {-11: State.TIMED_OUT, -12: State.TIMED_OUT, -10: State.OUT_OF_MEMORY},
}
_DELETED = 256 + 15  # qdel: 256 and the number of the signal (seen with OpenPBS 23.06)
_UNITS = {"b": 1 / 1024**2, "kb": 1 / 1024, "mb": 1.0, "gb": 1024.0, "tb": 1024.0**2}
_UNUSABLE = ("down", "offline", "unknown", "stale", "provisioning", "maintenance", "initializing")


def parse_qstat_json(text: str) -> tuple[JobState, ...]:
    """The jobs of OpenPBS's `qstat -f -F json` (with -x: those that have ended too).

    Raises ProgramFailed if the text is not such a document.
    """
    return tuple(_job_state(name, job, "openpbs") for name, job in tables(text, "Jobs"))


def parse_qstat_xml(text: str) -> tuple[JobState, ...]:
    """The jobs of Torque's `qstat -x`. Raises ProgramFailed if the text is not such a document."""
    if not text.strip():  # no jobs
        return ()
    return tuple(
        _job_state(job.findtext("Job_Id", ""), {child.tag: child.text or "" for child in job}, "torque")
        for job in _tree(text).iter("Job")
    )


def _job_state(name: str, job: Mapping[str, Any], kind: str) -> JobState:
    letter = str(job.get("job_state", ""))
    comment = str(job.get("comment", "")).strip()
    nodes = "+".join(dict.fromkeys(re.findall(r"(?:^|\+)\(?([^/+():]+)", str(job.get("exec_host", "")))))
    if letter in _WAITING:
        return JobState(name, _WAITING[letter], letter, _readable(comment), nodes=nodes)
    if letter in _RUNNING or letter not in _ENDED:
        said = _RUNNING.get(letter, f"PBS reports the state {letter or '?'}, which ctk does not know")
        return JobState(name, State.RUNNING, letter, said, nodes=nodes)
    status = leading(job.get("Exit_status", job.get("exit_status")))
    # The output could not be copied back. PBS still reports exit status 0 (seen with OpenPBS 23.06).
    stranded = leading(job.get("Stageout_status")) == 0
    lost = "PBS could not copy its output back; it is in the spool directory of its node" if stranded else ""
    state, said = _end(status, kind)
    signal = status - 256 if status is not None and 256 < status < 256 + 65 else None
    if signal is None and status is not None and 128 < status <= 128 + 64:
        signal = status - 128
    return JobState(name, state, letter, join_reasons(said, lost), status, signal, nodes)


def _end(status: int | None, kind: str) -> tuple[State, str]:
    if status is None:  # deleted before it ran
        return State.CANCELLED, "it was deleted before it ran"
    if status == 0:
        return State.COMPLETED, ""
    if status == _DELETED:
        return State.CANCELLED, "deleted by qdel"
    if status in _LIMITS[kind]:
        return _LIMITS[kind][status], reason_words(kind, str(status))
    if status < 0:
        known = reason_words(kind, str(status))
        return State.FAILED, f"PBS ended it with status {status}" if known == str(status) else known
    if status > 256:
        return State.FAILED, f"ended by signal {status - 256}"
    return State.FAILED, "its script ended with a nonzero exit status"


def _readable(comment: str) -> str:
    """Of `Not Running: Insufficient amount of resource: ngpus`, the reason; that a job can never run is part of it."""
    reason = comment.removeprefix("Can Never Run: ")
    return comment.removeprefix("Not Running: ") if reason == comment else f"it can never run: {reason}"


def parse_nodes_xml(text: str) -> tuple[HostFacts, ...]:
    """The nodes of Torque's `pbsnodes -x`. Raises ProgramFailed if the text is not such a document."""
    if not text.strip():
        return ()
    found = []
    for node in _tree(text).iter("Node"):
        status = dict(part.partition("=")[::2] for part in node.findtext("status", "").split(","))
        state = node.findtext("state", "")
        found.append(
            HostFacts(
                node.findtext("name", ""),
                cpus=leading(node.findtext("np")) or 0,
                memory=mebibytes(status.get("physmem", "")),
                gpus=leading(node.findtext("gpus")) or 0,
                usable=is_usable(state),
            )
        )
    return tuple(found)


def is_usable(state: str) -> bool:
    """Whether jobs can run on a node in this state, such as `free`, `job-busy` or `down,offline`."""
    return not any(word in state for word in _UNUSABLE)


def mebibytes(text: str) -> int:
    """MiB of PBS's `16384kb`; 0 for anything else."""
    match = re.fullmatch(r"([0-9]{1,18})([kmgt]?b)", text.strip().lower())
    return int(int(match[1]) * _UNITS[match[2]]) if match else 0


def submitted_job(text: str) -> str | None:
    """The job number that qsub of PBS prints (`12.pbs1`, `12[].pbs1`); None if it printed none."""
    last = text.strip().splitlines()[-1:]
    return last[0].strip() if last and re.fullmatch(r"\d+(?:\[\])?(?:\.[\w.-]+)?", last[0].strip()) else None


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise ProgramFailed(f"PBS printed no JSON: {error}", code="scheduler-output") from error
    if not isinstance(document, dict):
        raise ProgramFailed("PBS printed JSON of another form", code="scheduler-output")
    return document


def tables(text: str, key: str) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a document in JSON that `key` names, by their names. Raises ProgramFailed if it is no such one."""
    found = _document(text).get(key, {})
    if not isinstance(found, dict):
        raise ProgramFailed("PBS printed JSON of another form", code="scheduler-output")
    return [(name, table) for name, table in found.items() if isinstance(table, dict)]


def _tree(text: str) -> ElementTree.Element:
    if "<!" in text:  # neither qstat nor pbsnodes declares a document type; entities could expand without end
        raise ProgramFailed("PBS printed XML with a declaration", code="scheduler-output")
    try:
        return ElementTree.fromstring(text)  # noqa: S314 - of the site's scheduler, without declarations
    except ElementTree.ParseError as error:
        raise ProgramFailed(f"PBS printed no XML: {error}", code="scheduler-output") from error
