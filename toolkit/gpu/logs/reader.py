"""Read a log of any size in constant memory, and note the lines that say something about the GPU.

A log is bytes: it may hold anything, and one line may be as long as the file. Only lines with a word of interest are
looked at, a line's parts between carriage returns (progress bars) each by itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING

from toolkit.gpu.logs.notes import ENDS, ESCAPES, MAX_OF_LINE, Notes, Span, matches_negative, may_match
from toolkit.gpu.logs.patterns import core_groups, is_negative
from toolkit.inventory.formats.sif import is_sif

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import BinaryIO

    from toolkit.gpu.logs.notes import Sighting
    from toolkit.gpu.logs.patterns import Pattern

_CHUNK = 1 << 20
# A longer line is looked at in pieces, which overlap: what NCCL and TensorFlow print is shorter.
LONGEST, OVERLAP = 1600, 600
# Lines of interest that are all looked at; and how many of each MiB behind them, of each core.
_ALL, _SOME, _OF_A_CORE = 80_000, 120, 8
# Of those that are left out, so many in a MiB are looked at for words against the use of the GPU.
_MAX_DOUBTFUL = 10_000
# Bytes of different lines that are all searched; and how many of each MiB behind them.
_ALL_TEXT, _SOME_TEXT = 256 << 20, 1 << 17
# Letters in lower case and digits as 0: lines of one shape differ in nothing that a core has.
_SHAPE = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\r", b"abcdefghijklmnopqrstuvwxyz" + b"0" * 10 + b"\n")
_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_MAX_KNOWN = 50_000
_NO_MARKS = bytes(byte for byte in range(256) if byte not in b"\r\n")
# How a file begins that is not a text, and how to read it as one.
_NOT_TEXT = (
    (b"\x1f\x8b\x08", "compressed with gzip", "zcat"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "zstdcat"),
    (b"\xfd7zXZ\x00", "compressed with xz", "xzcat"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
)
_LOOKED_AT = 4096
# So many pieces before and behind a line can say that it is one of a configuration: a progress bar may stand between.
_NEAR = 2
_MAX_CONTROLS = 0.05


@dataclass(slots=True)
class Log:
    """What was seen in a log, and its size.

    `unproven` is the first line that looks like one of ctk and has not the token of the job's script. `unread`: a line
    was left out that might say that the program did not use the GPU, since the log has too many lines of interest.
    """

    sightings: list[Sighting] = field(default_factory=list)
    lines: int = 0
    size: int = 0
    not_text: NotText | None = None
    unproven: int | None = None
    unread: bool = False


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
    notes = Notes()
    lines = _Lines(notes)
    size = 0
    rest = last = start = b""
    within = False
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if not start:
            start = chunk[:_LOOKED_AT]
            if (other := not_text(start)) is not None and other.is_sure:  # nothing of it is judged
                return Log(size=size, not_text=other)
        last = chunk[-1:]
        data = rest + chunk
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end:
            lines.look(data[: end - 1], data[end - 1 : end], begins=not within)
            rest, within = data[end:], False
        elif len(data) > _CHUNK:
            # A very long line: its end so far is looked at once more, with what follows.
            lines.look(data, b"", begins=not within)
            rest, within = data[-OVERLAP:], True
        else:
            rest = data
        if on_progress is not None:
            on_progress(size)
    lines.look(rest, b"\n", begins=not within)
    sightings = [seen for group in notes.sightings.values() for seen in group]
    complete = last in (b"", b"\n")
    return Log(sightings, lines.newlines - complete, size, not_text(start), notes.unproven, unread=lines.unread)


@dataclass(slots=True)
class _Lines:
    """Looks at lines: all of a usual log, and at each only once where it is repeated.

    That a log of any content is read at 1 GiB a minute, lines that differ only in digits are searched together for the
    cores of patterns. Of logs with more lines of interest than `_ALL`, or with more text than `_ALL_TEXT` in lines that
    differ, some is left out.
    """

    notes: Notes
    newlines: int = 0  # before the lines that are looked at next
    # Whether a line was left out that might say that the program did not use the GPU.
    unread: bool = False
    _lines_left: int = field(default_factory=lambda: _ALL)
    _forms_left: int = field(default_factory=lambda: _ALL)  # lines that differ only in digits have one form
    _text_left: int = field(default_factory=lambda: _ALL_TEXT)
    _order: int = 0
    _before: list[bytes] = field(default_factory=list)  # the last pieces that were looked at
    _known: dict[bytes, tuple[Pattern, ...]] = field(default_factory=dict)

    def look(self, data: bytes, mark: bytes, *, begins: bool) -> None:
        """Note what the lines in `data` say, of which the last ends with `mark`; the first `begins` in it."""
        marks = data.translate(None, _NO_MARKS) + mark
        shapes = data.translate(_SHAPE).split(b"\n")
        different = dict.fromkeys(shapes)
        pieces: list[bytes] = []
        parts: Sequence[int] = range(len(shapes))
        if max(map(len, different)) > LONGEST or not begins or not mark:
            pieces, parts = _cut(data, begins=begins, ends=bool(mark))
            shapes = [piece.translate(_SHAPE) for piece in pieces]
            different = dict.fromkeys(shapes)
        few = max(_SOME, self._lines_left)
        if wanted := self._wanted(different):
            pieces = pieces or data.replace(b"\r", b"\n").split(b"\n")
            chosen = list(compress(range(len(shapes)), map(wanted.__contains__, shapes)))
            last = {pieces[index]: index for index in chosen}
            first = {pieces[index]: index for index in reversed(chosen)}
            counts = Counter(pieces[index] for index in chosen)
            may_speak = {index: self._patterns(piece, wanted[shapes[index]]) for piece, index in first.items()}
            speaking = sorted(index for index, candidates in may_speak.items() if candidates)
            indices = self._few(speaking, few, pieces, may_speak)
            counted = newlines = 0
            for index in indices:
                piece = pieces[index]
                # Numbers of lines count newlines only, not the carriage returns of progress bars.
                newlines += marks.count(b"\n", counted, parts[index])
                counted = parts[index]
                line = self.newlines + newlines + 1
                span = Span(
                    line,
                    line + marks.count(b"\n", counted, parts[last[piece]]),
                    (self._order + last[piece]) * MAX_OF_LINE,
                    counts[piece],
                )
                before = [*self._before, *pieces[max(0, index - _NEAR) : index]][-_NEAR:]
                self.notes.add(span, piece, may_speak[index], [*before, *pieces[index + 1 : index + 1 + _NEAR]])
            self._lines_left = max(
                0, self._lines_left - sum(_cost(pieces[index], len(may_speak[index])) for index in indices)
            )
        self._before = data[-LONGEST:].replace(b"\r", b"\n").split(b"\n")[-_NEAR:]
        self._order += len(shapes)
        self.newlines += marks.count(b"\n")

    def _wanted(self, shapes: Iterable[bytes]) -> dict[bytes, list[Pattern]]:
        """Those of `shapes` that may be of interest, with the patterns whose cores they have."""
        text = self._some_text(b"\n".join((b"", *shapes, b"")))
        few = max(_OF_A_CORE, self._forms_left)
        plain = ESCAPES.sub(b"", text) if b"\x1b" in text else text  # colours may stand within a word of interest
        rows: dict[bytes, list[Pattern]] = {}
        for word, cores in core_groups():
            if word not in plain:
                continue
            for core, candidates in cores:
                # Of the exceptions of a program only the last one counts.
                ends = all(pattern.kind in ENDS for pattern in candidates)
                found, complete = _rows_with(plain, core, _OF_A_CORE if ends else few)
                for row in found:
                    rows.setdefault(row, []).extend(candidates)
                if not complete and any(map(is_negative, candidates)):
                    self.unread = True
        if plain is text or not rows:
            return rows
        both = zip(text.split(b"\n"), plain.split(b"\n"), strict=True)
        return {shape: rows[row] for shape, row in both if row in rows}

    def _some_text(self, text: bytes) -> bytes:
        self._text_left -= len(text)
        if self._text_left > 0 or len(text) <= _SOME_TEXT:
            return text
        self.unread = True
        half = _SOME_TEXT // 2
        return text[: text.find(b"\n", half) + 1] + text[text.rfind(b"\n", 0, -half) :]

    def _patterns(self, piece: bytes, candidates: list[Pattern]) -> tuple[Pattern, ...]:
        """Those of `candidates` that may match a line, asked once of lines that differ only in digits."""
        zeros = piece.translate(_ZEROS)
        known = self._known.get(zeros)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._forms_left = max(0, self._forms_left - _cost(zeros, len(candidates)))
            known = self._known[zeros] = may_match(zeros, candidates)
        return known

    def _few(
        self, indices: list[int], few: int, pieces: list[bytes], candidates: dict[int, tuple[Pattern, ...]]
    ) -> list[int]:
        """The first and last of many."""
        if len(indices) <= few:
            return indices
        if not self.unread:
            doubtful = [index for index in indices[few // 2 : -(few // 2)] if any(map(is_negative, candidates[index]))]
            self.unread = len(doubtful) > _MAX_DOUBTFUL or any(
                matches_negative(pieces[index], candidates[index]) for index in doubtful
            )
        return indices[: few // 2] + indices[-(few // 2) :]


def _cost(piece: bytes, candidates: int) -> int:
    """As how many lines a piece counts: the time grows with its length, and with the patterns that are tried."""
    return 1 + len(piece) // 200 + len(piece) * candidates // 1000


def _rows_with(text: bytes, core: bytes, few: int) -> tuple[list[bytes], bool]:
    """The lines of `text` that have a core, or the first and last few; and whether these are all."""
    rows: list[bytes] = []
    position = text.find(core)
    while position >= 0 and len(rows) < few // 2:
        start, end = text.rfind(b"\n", 0, position) + 1, text.find(b"\n", position)
        rows.append(text[start:end])
        position = text.find(core, end)
    end = len(text)
    while position >= 0 and len(rows) < few and (found := text.rfind(core, position, end)) >= 0:
        start = text.rfind(b"\n", 0, found) + 1
        rows.append(text[start : text.find(b"\n", found)])
        end = start
    return rows, position < 0 or text.find(core, position, end) < 0


def _cut(data: bytes, *, begins: bool, ends: bool) -> tuple[list[bytes], list[int]]:
    """The lines of `data` between newlines or carriage returns, long ones in pieces that overlap; and each one's line.

    A NUL stands where a piece does not begin or end a line: no pattern for a whole line matches there.
    """
    lines = data.replace(b"\r", b"\n").split(b"\n")
    if not begins:
        lines[0] = b"\0" + lines[0]
    if not ends:
        lines[-1] += b"\0"
    pieces, parts = [], []
    for number, line in enumerate(lines):
        for start in range(0, max(1, len(line) - OVERLAP), LONGEST - OVERLAP):
            end = start + LONGEST
            pieces.append(b"\0" * (start > 0) + line[start:end] + b"\0" * (end < len(line)))
            parts.append(number)
    return pieces, parts
