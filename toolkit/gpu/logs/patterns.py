"""The lines of logs that say something about the GPU: typed form of `patterns/*.toml`.

Keys of a file: `title` (the framework), `family` (whose lines confirm or contradict one another; lines of "cuda"
concern every family; a pattern may have its own of both), `date` (when the sources were read). Keys of a pattern:
`kind`, `core` (lower-case text, or several of which every such line contains one), `regex`, `versions`, `meaning` (may
use the groups of the regex), `source`, and for a problem `code` and `fix`. `ends`: the program prints the line where it
ends with an error. `weak`: the line counts only where no other says something of the device. With `message`, the regex
must match the whole message of a line: what stands behind its timestamps, levels and names of loggers. `says`: the
words of the message must say so (`words.py`). `general` (a file): lines that several programs print; they count only if
no pattern of another file says what the same line means.
`own` (a file): lines of ctk, of which the regex matches what stands behind `ctk[TOKEN]: `. `parts` (a file): what
`@NAME@` in a regex is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from toolkit.gpu.logs.words import Said
from toolkit.support.enums import StrEnum
from toolkit.support.tomlfile import parse_toml

_DIRECTORY = Path(__file__).parent / "patterns"
_PLAIN = ("id", "versions", "meaning", "source", "code", "fix")


class Kind(StrEnum):
    """What a line says.

    USED: the framework works on the GPU. MEMORY, CRASH: it failed there. FALLBACK: it does not work on the GPU.
    CAUSE: why it cannot. CLAIM, CPU_CLAIM: the program says on which device it works. VISIBLE: the GPU is seen.
    BEGIN: ctk's job script announces the token of its lines. GATE, NOT_STARTED: ctk's gate found no usable GPU, and
    ended the job. IDLE: some GPUs of the job were not used.
    TRACEBACK, EXCEPTION: how a Python program ended that may have failed for another reason. STATUS: ctk's job script
    says how its program ended. TCP, RDMA, NO_RDMA: what NCCL talks over. TIME_LIMIT, HOST_MEMORY, CANCELLED: who ended
    the job. HARMLESS: nothing.
    """

    USED = "used"
    MEMORY = "memory"
    CRASH = "crash"
    FALLBACK = "fallback"
    CAUSE = "cause"
    CLAIM = "claim"
    CPU_CLAIM = "cpu-claim"
    VISIBLE = "visible"
    BEGIN = "begin"
    GATE = "gate"
    NOT_STARTED = "not-started"
    IDLE = "idle"
    TCP = "tcp"
    RDMA = "rdma"
    NO_RDMA = "no-rdma"
    TIME_LIMIT = "time-limit"
    HOST_MEMORY = "host-memory"
    CANCELLED = "cancelled"
    TRACEBACK = "traceback"
    EXCEPTION = "exception"
    STATUS = "status"
    HARMLESS = "harmless"


_NEGATIVE = frozenset(
    {Kind.FALLBACK, Kind.CAUSE, Kind.CPU_CLAIM, Kind.GATE, Kind.NOT_STARTED, Kind.IDLE, Kind.MEMORY, Kind.CRASH}
)
# Cores are compared with lines whose digits are all 0.
_DIGITS = str.maketrans("123456789", "000000000")


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One line that a log may have. Each is one of `patterns()`: comparing their fields would take most of the time."""

    id: str
    framework: str
    family: str
    kind: Kind
    cores: tuple[str, ...]
    regex: re.Pattern[str]
    versions: str
    meaning: str
    source: str
    code: str | None = None
    fix: str | None = None
    message: bool = False
    general: bool = False
    own: bool = False
    ends: bool = False
    weak: bool = False
    says: Said | None = None

    @property
    def of_zeros(self) -> re.Pattern[str]:
        """A regex that matches the line with 0 for each digit, if `regex` matches the line."""
        return _of_zeros(self)


def is_negative(pattern: Pattern) -> bool:
    """Whether a line may keep a log from being one of a program that used the GPU."""
    return pattern.kind in _NEGATIVE and not pattern.weak


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in the order of the files' names."""
    return tuple(pattern for path in sorted(_DIRECTORY.glob("*.toml")) for pattern in _read(path))


def _read(path: Path) -> list[Pattern]:
    content = parse_toml(path.read_text(encoding="utf-8"))
    return [
        Pattern(
            framework=row.get("title", content["title"]),
            family=row.get("family", content["family"]),
            kind=Kind(row["kind"]),
            cores=tuple([row["core"]] if isinstance(row["core"], str) else row["core"]),
            regex=re.compile(_regex(row, content.get("parts", {})), re.IGNORECASE if row.get("ignore_case") else 0),
            message=row.get("message", False),
            general=content.get("general", False),
            own=content.get("own", False),
            ends=row.get("ends", False),
            weak=row.get("weak", False),
            says=Said(row["says"]) if "says" in row else None,
            **{key: row.get(key) for key in _PLAIN},
        )
        for row in content["pattern"]
    ]


@cache
def _of_zeros(pattern: Pattern) -> re.Pattern[str]:
    regex = pattern.regex
    kept = r"(\{\d*,?\d*\}|\\x\w\w|\(\?P[=<]\w+)"  # repetitions, characters by their number, and names of groups
    return re.compile(re.sub(f"{kept}|[1-9]", lambda match: match[1] or "0", regex.pattern), regex.flags)


def _regex(row: dict[str, Any], parts: dict[str, str]) -> str:
    text: str = row["regex"]
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return rf"^(?:{text})$" if row.get("message") else text


@cache
def core_groups() -> tuple[tuple[bytes, tuple[tuple[bytes, tuple[Pattern, ...]], ...]], ...]:
    """What to search a log for: a word, and the cores with that word, each with its patterns; digits are all 0.

    Where the word is absent, none of its cores has to be looked for.
    """
    by_core: dict[str, list[Pattern]] = {}
    for pattern in patterns():
        for core in dict.fromkeys(core.translate(_DIGITS) for core in pattern.cores):
            by_core.setdefault(core, []).append(pattern)
    groups: dict[str, list[tuple[bytes, tuple[Pattern, ...]]]] = {}
    for core, found in by_core.items():
        word = next((word for word in _WORDS if word in core), core.strip("\n"))
        groups.setdefault(word, []).append((core.encode(), tuple(found)))
    return tuple((word.encode(), tuple(cores)) for word, cores in groups.items())


# Words that most cores contain, the rarer ones first: each spares a search for every core that has it.
_WORDS = (
    *("nccl", "cudnn", "tensorrt", "cuda", "gpu", "rocm", "nvidia", "cpu", "net/", "numa", "max_m"),
    *("max mem", "memory", "device", "could not", "backend", "platform", "accelerator", "lib", "comput", "train"),
    *("running", "using", "load", "support", "not "),
    *("eerror", "nerror", "xerror", "derror", "error"),  # ValueError, AssertionError, IndexError, NotImplementedError
)
