"""Read a log of any size in constant memory, and note the lines that say something about the GPU.

A log is bytes: it may hold anything, and one line may be as long as the file. Only the surroundings of a word of
interest are looked at, a line's parts between carriage returns (progress bars) each by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.gpu.logs.patterns import Kind, core_groups
from toolkit.inventory.formats.sif import is_sif
from toolkit.support.explanations import explanations
from toolkit.support.redaction import redact

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
# What stands before the message of a line. One piece at a time is removed, so that no line takes long.
_BEFORE_MESSAGE = re.compile(
    r"""\s+ | [-–—>#*=|•+]+\s | [^\x00-\x7f\w]+
      | \[[^\[\]]{0,100}\]:? | \([^()]{0,100}\):? | <[^<>]{0,100}>:?
      | \d{1,4}[-/:.]\d[\d:.,/T+-]*Z?(?=[\s\]|:,-]|$) | [IW]\d{4}\s | \d{4,}\s
      | (?:DEBUG|INFO|NOTICE|WARN(?:ING)?|debug|info|warning)\b(?::[\w.]{1,60}:)?:?
      | [\w./-]{1,80}\.(?:py|cc|cpp)(?::\d+)?[\]:]*\s | [\w.<>:-]{1,80}\s{1,9}[-|]\s
      | (?:rank|Rank|RANK)[ _:]?\d+[:,\s] | std(?:out|err):\s | [\w.-]{0,60}\d:\s""",
    re.VERBOSE,
)
# Bytes that are not UTF-8, such as the C1 form of a terminal's codes.
_NO_CHARACTERS = re.compile("\ufffd[0-9;?]*[ -/]?[A-Za-z]?$|\ufffd")
# How a file begins that is not a text, and how to read it as one.
_NOT_TEXT = (
    (b"\x1f\x8b\x08", "compressed with gzip", "zcat"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstdcat"),
    (b"\xfd7zXZ\x00", "compressed with xz", "xzcat"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
)
_LOOKED_AT = 4096
_MAX_CONTROLS = 0.05


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
    groups: dict[str, str] = field(default_factory=dict)

    @property
    def code(self) -> str | None:
        """The code of the problem: ctk's own lines name theirs."""
        named = self.groups.get("code")
        return named if named in explanations() else self.pattern.code

    @property
    def fix(self) -> str | None:
        fix = self.groups.get("fix", "?")
        return self.pattern.fix if fix == "?" else fix


@dataclass(slots=True)
class Log:
    """What was seen in a log, and its size."""

    sightings: list[Sighting] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    not_text: NotText | None = None


@dataclass(frozen=True, slots=True)
class NotText:
    """What a file is that is not a text, and the program that prints its text, if there is one."""

    what: str
    reader: str | None = None
    # A log can have binary data in it, and still say something.
    is_sure: bool = True


def not_text(start: bytes) -> NotText | None:
    """What a file that begins so is, if it is not a text."""
    if is_sif(start):
        return NotText("an image (SIF)")
    if start.startswith(b"\x7fELF"):
        return NotText("a program (ELF)")
    for magic, what, reader in _NOT_TEXT:
        if start.startswith(magic):
            return NotText(what, reader)
    if start[4:10] == b"1AY&SY":
        return NotText("compressed with bzip2", "bzcat")
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\b\a\x1b" for byte in start)
    return NotText("binary data", is_sure=False) if controls > _MAX_CONTROLS * len(start) else None


def read_log(stream: BinaryIO, on_progress: Callable[[int], None] | None = None) -> Log:
    """Read a log to its end. `on_progress` is called with the number of bytes read."""
    notes = _Notes()
    newlines = size = 0
    rest = last = start = b""
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        start = start or chunk[:_LOOKED_AT]
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
    newlines = _look(rest + b"\n", newlines, notes) - 1
    sightings = [seen for group in notes.sightings.values() for seen in group]
    return Log(sightings, newlines + (last not in (b"", b"\n")), size, not_text(start))


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


# Lines of these kinds may say something of the device besides.
_SIDE = (Kind.HARMLESS, Kind.VISIBLE)


def _message(text: str) -> str:
    """A line without what a logger, a launcher or a shell puts before its message, and without bytes of no text."""
    text = _NO_CHARACTERS.sub("", text)
    position = 0
    while (match := _BEFORE_MESSAGE.match(text, position)) and match.end() > position:
        position = match.end()
    return text[position:].rstrip()


@dataclass(slots=True)
class _Notes:
    sightings: dict[tuple[str, int | None], list[Sighting]] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    order: int = 0

    def add(self, line: int, raw: bytes, candidates: list[Pattern]) -> None:
        rank, text = self._rank(raw.decode("utf-8", errors="replace"))
        message = _message(text) if any(pattern.message for pattern in candidates) else ""
        matches = [
            (pattern, match)
            for pattern in dict.fromkeys(candidates)
            if (match := pattern.regex.search(message if pattern.message else text))
        ]
        said = any(not pattern.general and pattern.kind not in _SIDE for pattern, _ in matches)
        for pattern, match in matches:
            if not (said and pattern.general):
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
        groups = {name: redact(value) if value else "?" for name, value in match.groupdict().items()}
        meaning = pattern.meaning.format_map(groups)
        known = self.sightings.setdefault((pattern.id, rank), [])
        seen = next((sighting for sighting in known if sighting.meaning == meaning), None)
        if seen is not None:
            seen.count += 1
        elif len(known) < _MAX_MEANINGS:
            start = max(0, match.end() - _SHOWN)
            seen = Sighting(pattern, rank, line, text[start : start + _SHOWN].strip(), meaning, groups=groups)
            known.append(seen)
        else:
            return
        seen.last, seen.last_order = line, self.order
