"""Read a log of any size in constant memory, and note the lines that say something about the GPU.

A log is bytes: it may hold anything, and one line may be as long as the file. Only the surroundings of a word of
interest are looked at, a line's parts between carriage returns (progress bars) each by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.gpu.logs.patterns import core_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from toolkit.gpu.logs.patterns import Pattern

_CHUNK = 1 << 20
# Of a longer line only so much around a word is looked at. What NCCL and TensorFlow print is shorter.
_BEFORE, _AFTER = 600, 1400
_OVERLAP = _BEFORE + _AFTER
# Ranks that are told apart; lines of further ones count as lines without a rank.
_MAX_RANKS = 1024
# Different meanings of a pattern that are told apart: a log can name several libraries.
_MAX_MEANINGS = 8
_SHOWN = 300

_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]{0,200}(?:\x07|\x1b\\)?|[@-Z^_])")
# How launchers mark a rank's lines: torch `[rank1]:`, torchrun --tee `[default1]:`, srun -l `1: `, others `[1]: `,
# mpirun --tag-output `[1,1]<stdout>:`.
_RANK = re.compile(r"\s*(?:\[(?:rank|default)(\d{1,6})\]:?|\[\d+,(\d{1,6})\]<\w+>:|\[(\d{1,6})\]:? |(\d{1,6}): )\s*")


@dataclass(slots=True)
class Sighting:
    """One pattern in the lines of one rank: where it was first and last seen, how often, and the first such line."""

    pattern: Pattern
    rank: int | None
    first: int
    text: str
    meaning: str
    last: int = 0
    count: int = 1
    # The order of sightings in the file: lines with carriage returns have several in one line.
    last_order: int = 0


@dataclass(slots=True)
class Log:
    """What was seen in a log, and its size."""

    sightings: list[Sighting] = field(default_factory=list)
    lines: int = 0
    size: int = 0


def read_log(stream: BinaryIO, on_progress: Callable[[int], None] | None = None) -> Log:
    """Read a log to its end. `on_progress` is called with the number of bytes read."""
    notes = _Notes()
    newlines = size = 0
    rest = last = b""
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        last = chunk[-1:]
        data = rest + chunk
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(data) > _CHUNK:
            # A very long line: its end so far is looked at once more, with what follows.
            end = len(data) - _OVERLAP
        newlines = _look(data[:end], newlines, notes)
        rest = data[end:]
        if on_progress is not None:
            on_progress(size)
    newlines = _look(rest, newlines, notes)
    sightings = [seen for group in notes.sightings.values() for seen in group]
    return Log(sightings, newlines + (last not in (b"", b"\n")), size)


def _look(data: bytes, newlines: int, notes: _Notes) -> int:
    """Note the lines of interest in `data`, before which the log has `newlines`. Returns how many it has behind it."""
    if b"\x1b" in data:  # colours may stand within a word of interest
        data = _ESCAPES.sub(b"", data)
    counted = 0
    for start, end, candidates in _pieces(data):
        newlines += data.count(b"\n", counted, start)
        counted = start
        notes.add(newlines + 1, data[start:end], candidates)
    return newlines + data.count(b"\n", counted)


def _pieces(data: bytes) -> Iterator[tuple[int, int, list[Pattern]]]:
    """The parts of `data` that may be of interest, in their order, with the patterns whose cores they have."""
    lowered = data.lower()
    found: dict[tuple[int, int], list[Pattern]] = {}
    for word, cores in core_groups():
        if word not in lowered:
            continue
        for core, candidates in cores:
            position = lowered.find(core)
            while position >= 0:
                start, end = _bounds(data, position)
                found.setdefault((start, end), []).extend(candidates)
                position = lowered.find(core, max(end, position + len(core)))
    for start, end in sorted(found):
        yield start, end, found[start, end]


def _bounds(data: bytes, position: int) -> tuple[int, int]:
    """The line around a position, between newlines or carriage returns, of a long line a part."""
    lowest, highest = max(0, position - _BEFORE), position + _AFTER
    start = max(data.rfind(b"\n", lowest, position), data.rfind(b"\r", lowest, position)) + 1
    ends = (data.find(mark, position, highest) for mark in (b"\n", b"\r"))
    return max(start, lowest), min((end for end in ends if end >= 0), default=min(highest, len(data)))


@dataclass(slots=True)
class _Notes:
    sightings: dict[tuple[str, int | None], list[Sighting]] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    order: int = 0

    def add(self, line: int, raw: bytes, candidates: list[Pattern]) -> None:
        rank, text = self._rank(raw.decode("utf-8", errors="replace"))
        for pattern in dict.fromkeys(candidates):
            if match := pattern.regex.search(text):
                self._note(pattern, rank, line, text, match)

    def _rank(self, text: str) -> tuple[int | None, str]:
        match = _RANK.match(text)
        if match is None:
            return None, text
        rank = int(next(filter(None, match.groups())))
        if rank not in self.ranks and len(self.ranks) >= _MAX_RANKS:
            return None, text[match.end() :]
        self.ranks.add(rank)
        return rank, text[match.end() :]

    def _note(self, pattern: Pattern, rank: int | None, line: int, text: str, match: re.Match[str]) -> None:
        self.order += 1
        meaning = pattern.meaning.format_map({name: value or "?" for name, value in match.groupdict().items()})
        known = self.sightings.setdefault((pattern.id, rank), [])
        seen = next((sighting for sighting in known if sighting.meaning == meaning), None)
        if seen is not None:
            seen.count += 1
        elif len(known) < _MAX_MEANINGS:
            start = max(0, match.end() - _SHOWN)
            seen = Sighting(pattern, rank, line, text[start : start + _SHOWN].strip(), meaning)
            known.append(seen)
        else:
            return
        seen.last, seen.last_order = line, self.order
