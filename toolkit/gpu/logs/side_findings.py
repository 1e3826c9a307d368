"""What a log says besides where its program computed: over what NCCL talks, who ended the job, and harmless lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.logs.patterns import Kind
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.logs.notes import Sighting
    from toolkit.gpu.logs.reader import Log

# What Python prints without a traceback.
_WITHOUT_TRACEBACK = ("SyntaxError", "IndentationError")
# Lines after the last traceback of a program that ended: other ranks, the launcher and the scheduler print some.
_MAX_AFTER = 100
_AFTER = (Kind.TRACEBACK, Kind.TIME_LIMIT, Kind.HOST_MEMORY, Kind.CANCELLED, Kind.HARMLESS, Kind.IDLE)


def network(sightings: list[Sighting]) -> Iterator[Finding]:
    """What NCCL uses between the nodes."""
    tcp = _first(sightings, Kind.TCP)
    rdma = _first(sightings, Kind.RDMA)
    if rdma is not None:
        yield Finding("nccl-rdma", Severity.OK, said(rdma))
    if tcp is not None:
        reason = _first(sightings, Kind.NO_RDMA)
        yield Finding(
            "nccl-over-tcp",
            Severity.WARNING,
            f"{said(tcp)} With InfiniBand or RoCE in the nodes, that is many times slower."
            + (f" {said(reason)}" if reason else ""),
            "Install libibverbs1, ibverbs-providers and rdma-core in the image, see that /dev/infiniband is in the "
            "container (not with --contain), and unset NCCL_IB_DISABLE and NCCL_NET. On one node it does not matter.",
        )


def endings(sightings: list[Sighting]) -> Iterator[Finding]:
    """Who ended the job."""
    if seen := _first(sightings, Kind.TIME_LIMIT):
        yield Finding(
            "job-time-limit",
            Severity.WARNING,
            said(seen),
            "This says nothing about the GPU. Request more time (`--time`), or save checkpoints and continue.",
        )
    if seen := _first(sightings, Kind.HOST_MEMORY):
        yield Finding(
            "job-host-memory",
            Severity.WARNING,
            said(seen),
            "This is memory of the node, not of the GPU. Request more (`--mem`), or use fewer data-loading workers.",
        )
    ended = any(seen.pattern.kind in (Kind.TIME_LIMIT, Kind.HOST_MEMORY) for seen in sightings)
    if (seen := _first(sightings, Kind.CANCELLED)) and not ended:  # Slurm says of each that it cancelled the job
        yield Finding("job-cancelled", Severity.INFO, said(seen))


def program_error(log: Log) -> Sighting | None:
    """The exception with which a Python program ended: the last one, if nothing says that the program went on.

    A program also prints tracebacks of what it catches. It has ended if the job script says so, else if hardly anything
    follows.
    """
    last = _last(log, Kind.EXCEPTION)
    if last is None:
        return None
    traceback = any(seen.pattern.kind is Kind.TRACEBACK and seen.first <= last.last for seen in log.sightings)
    if not traceback and not last.text.lstrip().startswith(_WITHOUT_TRACEBACK) and "python" not in last.text:
        return None
    status = _last(log, Kind.STATUS)
    if status is not None and status.last_order > last.last_order:
        return None if status.groups["status"] == "0" else last
    later = [seen for seen in log.sightings if seen.last_order > last.last_order]
    went_on = log.lines - last.last > _MAX_AFTER or any(seen.pattern.kind not in _AFTER for seen in later)
    return None if went_on else last


def _last(log: Log, kind: Kind) -> Sighting | None:
    found = (seen for seen in log.sightings if seen.pattern.kind is kind)
    return max(found, key=lambda seen: seen.last_order, default=None)


def harmless(sightings: list[Sighting]) -> Iterator[Finding]:
    """The lines that look like errors and are none."""
    seen = [sighting for sighting in sightings if sighting.pattern.kind is Kind.HARMLESS]
    if seen:
        meanings = "; ".join(dict.fromkeys(f"line {sighting.first}: {sighting.meaning}" for sighting in seen))
        yield Finding("log-harmless-lines", Severity.INFO, f"Not the cause: {meanings}.")


def _first(sightings: list[Sighting], kind: Kind) -> Sighting | None:
    return min((seen for seen in sightings if seen.pattern.kind is kind), key=lambda seen: seen.first, default=None)


def said(seen: Sighting) -> str:
    """The meaning of a line, with its number."""
    return at(seen, seen.meaning)


def at(seen: Sighting, words: str) -> str:
    """`words` with the number of a line."""
    rank = f" (rank {seen.rank})" if seen.rank is not None else ""
    return f"Line {seen.first}{rank}: {words}."
