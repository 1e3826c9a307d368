"""What `-l`, `-J` and `-t` ask for: pure functions, which return None for what the server refuses."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TIME = re.compile(r"\d+|(\d+:){1,2}\d+")
_UNITS = {"": 1 / 1024**2, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}


@dataclass(frozen=True)
class Request:
    """Nodes, and what the job has on each of them. `lines` is how often each is in PBS_NODEFILE; memory in MiB.

    `shown` is the Resource_List of qstat.
    """

    nodes: int
    cores: int
    gpus: int
    memory: float
    lines: int
    scatter: bool
    shown: dict[str, str | int]


@dataclass(frozen=True)
class Tasks:
    """The tasks of an array, of which at most `limit` run at a time."""

    numbers: tuple[int, ...]
    limit: int | None


def parse_resources(lines: list[str], *, torque: bool) -> Request | None:
    shown: dict[str, str | int] = {}
    nodes, parts = 1, dict[str, str]()
    for line in lines:
        if line.startswith("nodes=" if torque else "select="):
            key, _, value = line.partition("=")
            count, *words = value.split(":")
            parts = dict(word.partition("=")[::2] for word in words)
            known = {"ppn", "gpus"} if torque else {"ncpus", "ngpus", "mem", "mpiprocs"}
            if not count.isdigit() or not all(parts.values()) or not set(parts) <= known:
                return None
            nodes = int(count)
            shown[key] = value
            continue
        for part in line.split(","):
            key, equals, value = part.partition("=")
            if not equals or key in ("nodes", "select") or (key == "walltime" and not _TIME.fullmatch(value)):
                return None
            shown[key] = value
    try:
        cores, gpus = int(parts.get("ppn", parts.get("ncpus", 1))), int(parts.get("gpus", parts.get("ngpus", 0)))
        processes = int(parts.get("mpiprocs", 1))
        memory = mebibytes(parts["mem"] if "mem" in parts else str(shown.get("mem", "0")))
    except ValueError:
        return None
    shown = {"nodect": nodes, **shown}
    if not torque:  # the server adds up what the chunks ask for
        shown |= {"ncpus": nodes * cores, "ngpus": nodes * gpus, "walltime": shown.get("walltime", "120:00:00")}
        shown |= {"mpiprocs": nodes * processes} if "mpiprocs" in parts else {}
        shown |= {"mem": f"{int(nodes * memory)}mb"} if "mem" in parts else {}
    scatter = torque or shown.get("place") == "scatter"
    each = cores if torque else processes
    # Torque's `mem` is that of the whole job.
    return Request(nodes, cores, gpus, memory / nodes if torque else memory, each, scatter, shown)


def parse_tasks(text: str, *, torque: bool) -> Tasks | None:
    """OpenPBS has one range with a step. Torque has a list of numbers and ranges, and no step (array_func.c)."""
    ranges, percent, limit = text.partition("%")
    if percent and not limit.isdigit():
        return None
    if not torque:
        match = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?", ranges)
        if match is None or int(match[2]) <= int(match[1]):
            return None
        numbers = tuple(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))
    else:
        numbers = ()
        for part in ranges.split(","):
            match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
            if match is None or int(match[2] or match[1]) < int(match[1]):
                return None
            numbers += tuple(range(int(match[1]), int(match[2] or match[1]) + 1))
    return Tasks(numbers, int(limit) if limit else None)


def mebibytes(text: str) -> float:
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    if match is None:
        raise ValueError(text)
    return int(match[1]) * _UNITS[match[2]]


def seconds(text: str) -> float:
    total = 0.0
    for part in text.split(":"):
        total = total * 60 + float(part)
    return total
