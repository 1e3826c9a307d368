"""What the lines of a log say: each pattern that was seen, of which rank, where first and last, and how often.

Lines of ctk itself count only with the token of the job's script, which its first line announces: a program can print
anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.gpu.logs.patterns import Kind, is_negative
from toolkit.gpu.logs.words import device_said, is_setting
from toolkit.support.explanations import explanations
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.gpu.logs.patterns import Pattern

# Ranks that are told apart; lines of further ones count as lines without a rank.
_MAX_RANKS = 1024
# Different meanings of a pattern that are told apart: a log can name several libraries.
_MAX_MEANINGS = 8
_SHOWN = 300
# How many patterns of one line are kept in order.
MAX_OF_LINE = 64

ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b\r\n]{0,200}(?:\x07|\x1b\\)?|[@-Z^_])")
# How launchers mark a rank's lines: torch `[rank1]:`, torchrun --tee `[default1]:`, srun -l `1: `, others `[1]: `,
# mpirun --tag-output `[1,1]<stdout>:`.
_RANK = re.compile(r"\s*(?:\[(?:rank|default)(\d{1,6})\]:?|\[\d+,(\d{1,6})\]<\w+>:|\[(\d{1,6})\]:? |(\d{1,6}): )\s*")
# What stands before the message of a line. One piece at a time is removed, so that no line takes long.
_BEFORE_MESSAGE = re.compile(
    r"""\s+ | ;\s | [-–—>#*=|•+]+\s | [^\x00-\x7f\w]+ | [\u2139\ufe0f]+
      | \[[^\[\]]{0,100}\]:? | \([^()]{0,100}\):? | <[^<>]{0,100}>:?
      | \d{1,4}[-/:.]\d[\d:.,/T+-]*Z?(?=[\s\]|:,;-]|$) | [IW]\d{4}\s | \d{4,}\s
      | (?:DEBUG|INFO|NOTICE|WARN(?:ING)?|debug|info|warning)\b(?::[\w.]{1,60}:)?:?
      | [A-Z]\w{1,30}\s(?=(?:INFO|WARNING)\s) | [\w.-]{1,60}:\s(?=\d{4}-\d\d-\d\d\s)
      | [\w./-]{1,80}\.(?:py|cc|cpp)(?::\d+)?[\]:]*\s | [\w.<>:-]{1,80}\s{1,9}[-|]\s
      | (?:rank|Rank|RANK)[ _:]?\d+[:,\s] | std(?:out|err):\s | [\w.-]{0,60}\d:\s""",
    re.VERBOSE,
)
# The message of a logger that writes JSON.
_JSON = re.compile(r'"(?:msg|message|event|text)":\s?"((?:[^"\\]|\\.){1,400})"')
_MAX_BEFORE = 40
_LONGEST_MESSAGE = 600  # bytes
# Bytes that are not UTF-8, such as the C1 form of a terminal's codes.
_NO_CHARACTERS = re.compile("\ufffd[0-9;?]*[ -/]?[A-Za-z]?$|\ufffd")
# The scheduler's own messages and those of the shell may come before the script's first line.
_MAX_LINES_BEFORE_TOKEN = 1000
_OWN = re.compile(r"ctk(?:\[([0-9a-f]{12})\])?: ")
# How the line of an exception, or of a program that aborts, begins.
_ERROR = re.compile(
    r"(?:^|[\s\]|>])(?!\w*Warning\b)(?:[\w.]{0,80}(?:Error|Exception|Errors)|cuda\w{0,20}Error\w{0,40}): |\[Fatal\]|"
    r"(?:^|\s)ERROR \([\w.-]+\[|(?:^|\s)F\d{4} \d|terminate called|what\(\): |Check failed: |"
    r"Exception in main training loop: |^GPUassert: |^(?:CUDA|Cuda|cuda) [Ee]rror\b"
)
_ERROR_WITHIN = 40
# Lines of these kinds may say something of the device besides.
_SIDE = (Kind.HARMLESS, Kind.VISIBLE)
_CLAIMS = (Kind.CLAIM, Kind.CPU_CLAIM)
_FAILED = (Kind.MEMORY, Kind.CRASH)
# How a Python program ends.
ENDS = (Kind.TRACEBACK, Kind.EXCEPTION)


@dataclass(slots=True)
class Sighting:
    """One pattern in the lines of one rank: where it was first and last seen, how often, and the first such line."""

    pattern: Pattern
    rank: int | None
    first: int
    text: str
    meaning: str
    last: int = 0
    count: int = 0
    # The order of sightings in the file: lines with carriage returns have several in one line.
    last_order: int = 0
    groups: dict[str, str] = field(default_factory=dict)
    is_error: bool = False

    @property
    def code(self) -> str | None:
        """The code of the problem: ctk's own lines name theirs."""
        named = self.groups.get("code")
        return named if named in explanations() else self.pattern.code

    @property
    def fix(self) -> str | None:
        """What to do, in the words of ctk and never of the log."""
        if self.code == self.pattern.code:
            return self.pattern.fix
        remedy = explanations()[self.code].remedy if self.code else None
        return " ".join(remedy.split()) if remedy else self.pattern.fix


@dataclass(frozen=True, slots=True)
class Span:
    """Where a line is first and last, by the numbers of lines; its last place in the order of the file; how often."""

    line: int
    last_line: int
    last_order: int
    count: int


@dataclass(slots=True)
class Notes:
    """What was seen so far."""

    sightings: dict[tuple[str, int | None], list[Sighting]] = field(default_factory=dict)
    # The first line that looks like one of ctk and has not the token of the job's script.
    unproven: int | None = None
    _ranks: set[int] = field(default_factory=set)
    _token: str | None = None

    def add(self, span: Span, raw: bytes, candidates: Iterable[Pattern], near: Iterable[bytes] = ()) -> None:
        """Note what a line beside the lines `near` says; `candidates` are the patterns whose cores it has."""
        rank, text = self._rank(_decoded(raw))
        message = _message_for(raw, text, candidates)
        matches = [
            (pattern, match)
            for pattern in candidates
            if (match := self._own(pattern, text, span) if pattern.own else _match(pattern, text, message))
        ]
        if any(pattern.general and pattern.kind in _CLAIMS for pattern, _ in matches):
            neighbours = [_decoded(line)[-_LONGEST_MESSAGE:] for line in near]
            if is_setting(text, message, neighbours) or message.endswith("?"):
                matches = [found for found in matches if not (found[0].general and found[0].kind in _CLAIMS)]
        kept = _without_words(matches)
        for number, (pattern, match) in enumerate(kept[:MAX_OF_LINE]):
            self._note(pattern, rank, span, number, text, match)

    def _own(self, pattern: Pattern, text: str, span: Span) -> re.Match[str] | None:
        """A line of ctk, if the token of the job's script stands in it."""
        begin = _OWN.match(text)
        match = begin and pattern.regex.match(text, begin.end())
        if begin is None or match is None:
            return None
        if pattern.kind is Kind.BEGIN:
            if begin[1] is None and self._token is None and span.line <= _MAX_LINES_BEFORE_TOKEN:
                self._token = match["token"]
            return None
        if begin[1] is None or begin[1] != self._token:
            self.unproven = self.unproven or span.line
            return None
        return match

    def _rank(self, text: str) -> tuple[int | None, str]:
        match = _RANK.match(text)
        if match is None:
            return None, text
        rank = int(next(filter(None, match.groups())))
        if rank not in self._ranks and len(self._ranks) >= _MAX_RANKS:
            return None, text[match.end() :]
        self._ranks.add(rank)
        return rank, text[match.end() :]

    def _note(
        self, pattern: Pattern, rank: int | None, span: Span, number: int, text: str, match: re.Match[str]
    ) -> None:
        groups = {name: redact(value) if value else "?" for name, value in match.groupdict().items()}
        meaning = pattern.meaning.format_map(groups)
        known = self.sightings.setdefault((pattern.id, rank), [])
        seen = next((sighting for sighting in known if sighting.meaning == meaning), None)
        is_error = pattern.ends or _ERROR.search(text, 0, match.start() + _ERROR_WITHIN) is not None
        if seen is None:
            if len(known) >= _MAX_MEANINGS:
                if pattern.kind is not Kind.EXCEPTION:  # of which the last one counts
                    return
                known.pop(0)
            start = max(0, match.end() - _SHOWN)
            shown = text[start : start + _SHOWN].strip("\0 \t")
            seen = Sighting(pattern, rank, span.line, shown, meaning, groups=groups)
            known.append(seen)
        seen.count += span.count
        seen.is_error |= is_error
        seen.last = max(seen.last, span.last_line)
        seen.last_order = max(seen.last_order, span.last_order + number)


def _without_words(matches: list[tuple[Pattern, re.Match[str]]]) -> list[tuple[Pattern, re.Match[str]]]:
    """Without general lines where another pattern says more of the same line: one of a framework, or with a code.

    Of the words of a program one is enough, that of the CPU before that of the GPU. That a program ended counts where
    the line says nothing else.
    """
    ends = [found for found in matches if found[0].kind in ENDS]
    if ends:
        rest = [found for found in matches if found not in ends]
        return _without_words(rest) if rest else sorted(ends, key=lambda found: found[0].weak)[:1]
    special = [found for found in matches if not found[0].general]
    general = [found for found in matches if found[0].general]
    if any(not pattern.says for pattern, _ in general):
        # Of what the words say, only that it is the CPU counts against a regex.
        general = [found for found in general if not found[0].says or found[0].kind is Kind.CPU_CLAIM]
    general.sort(key=lambda found: found[0].kind is not Kind.CPU_CLAIM)
    if any(pattern.kind not in _SIDE for pattern, _ in special):
        kept = special
    else:
        kept = special + ([found for found in general if found[0].code] or general[:1])
    if all(pattern.kind in _FAILED for pattern, _ in kept):
        # "CUDA error: out of memory, falling back to CPU" says both.
        kept = kept + [found for found in general if found[0].kind is Kind.CPU_CLAIM][:1]
    return kept


def may_match(zeros: bytes, candidates: Iterable[Pattern]) -> tuple[Pattern, ...]:
    """The patterns that may match a line, from the line with 0 for each of its digits."""
    if len(zeros) > _LONGEST_MESSAGE:
        candidates = [pattern for pattern in candidates if not pattern.message]
    if not candidates:
        return ()
    text, message = _text_and_message(zeros, candidates)
    return tuple(
        pattern
        for pattern in dict.fromkeys(candidates)
        if pattern.own
        or (
            device_said(text, message) is not None
            if pattern.says
            else pattern.of_zeros.search(message if pattern.message else text)
        )
    )


def matches_negative(raw: bytes, candidates: Iterable[Pattern]) -> bool:
    """Whether a line may say that the program did not use the GPU."""
    negative = list(filter(is_negative, candidates))
    if not negative:
        return False
    text, message = _text_and_message(raw, negative)
    return any(pattern.own or _match(pattern, text, message) for pattern in negative)


def _match(pattern: Pattern, text: str, message: str) -> re.Match[str] | None:
    if pattern.says is not None and device_said(text, message) is not pattern.says:
        return None
    return pattern.regex.search(message if pattern.message else text)


def _text_and_message(raw: bytes, candidates: Iterable[Pattern]) -> tuple[str, str]:
    text = _decoded(raw)
    if begin := _RANK.match(text):
        text = text[begin.end() :]
    return text, _message_for(raw, text, candidates)


def _decoded(raw: bytes) -> str:
    raw = ESCAPES.sub(b"", raw) if b"\x1b" in raw else raw
    return raw.decode("utf-8", errors="replace")


def _message_for(raw: bytes, text: str, candidates: Iterable[Pattern]) -> str:
    if len(raw) > _LONGEST_MESSAGE or not any(pattern.message for pattern in candidates):
        return ""
    return _message(text)


def _message(text: str) -> str:
    """A line without what a logger, a launcher or a shell puts before its message, and without bytes of no text."""
    text = _NO_CHARACTERS.sub("", text)
    if text.startswith("{") and (found := _JSON.search(text)):
        text = found[1]
    position = 0
    for _ in range(_MAX_BEFORE):
        match = _BEFORE_MESSAGE.match(text, position)
        if match is None or match.end() == position:
            break
        position = match.end()
    return text[position:].rstrip()
