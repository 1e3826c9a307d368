"""Checks of a job's resources: each returns the normalised value, or raises an error with the valid form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from toolkit.support.errors import WrongInput

NO_TIME_LIMIT = 0
_KIND_AND_COUNT = re.compile(r"(?:(?P<kind>[A-Za-z0-9][A-Za-z0-9._-]*):)?(?P<count>[0-9]{1,6})")
_MEMORY = re.compile(r"(?P<number>[0-9]{1,9})(?:(?P<unit>[KMGTkmgt])[Bb]?)?")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*")
_MAX_NAME = 255
_WORDS = re.compile(rf"{_WORD.pattern}(?:,{_WORD.pattern})*")
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@:=-]*")
_ARRAY_PART = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})(?::(?P<step>[1-9][0-9]{0,8}))?)?")

# sbatch(1), --time. Seven digits hold two years of minutes and cannot overflow Slurm's counters.
_NUMBER = "[0-9]{1,7}"
_TIMES = (
    re.compile(rf"(?P<minutes>{_NUMBER})(?::(?P<seconds>{_NUMBER}))?"),
    re.compile(rf"(?P<hours>{_NUMBER}):(?P<minutes>{_NUMBER}):(?P<seconds>{_NUMBER})"),
    re.compile(rf"(?P<days>{_NUMBER})-(?P<hours>{_NUMBER})(?::(?P<minutes>{_NUMBER})(?::(?P<seconds>{_NUMBER}))?)?"),
)
_TIME_EXAMPLES = (
    "For example: --time 4:00:00 for four hours, --time 30 for thirty minutes, --time 2-12 for two days and a half."
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


@dataclass(frozen=True, slots=True)
class Gpus:
    """How many GPUs the whole job gets, and of which kind where that matters. `count` 0 is the CPU, on purpose."""

    count: int
    kind: str | None = None

    def __str__(self) -> str:
        return f"{self.kind}:{self.count}" if self.kind else str(self.count)


def refuse(option: str, value: object, right: str, *, fix: str | None = None) -> NoReturn:
    """Raise WrongInput: the value is not `right`, a description of valid values."""
    raise WrongInput(f"{option} should be {right}, not {value!r}", fix=fix)


def parse_time(value: str, option: str = "--time") -> int:
    """Seconds of a time limit in any of Slurm's notations (sbatch(1), --time); NO_TIME_LIMIT for none."""
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return NO_TIME_LIMIT
    for notation in _TIMES:
        if match := notation.fullmatch(value):
            return sum(_SECONDS[unit] * int(number) for unit, number in match.groupdict(default="0").items())
    refuse(
        option,
        value,
        "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds "
        "or UNLIMITED",
        fix=_TIME_EXAMPLES,
    )


def check_time(value: str, option: str = "--time") -> int:
    """Seconds of a time limit that a user typed: Slurm also takes 99:99, which nobody means; 0:0:3600 is clear."""
    seconds = parse_time(value, option)
    if re.search(r"[1-9].*:(?:[6-9][0-9]|[0-9]{3,})(?::|$)", value):
        refuse(option, value, "a time with at most 59 after each colon", fix=_TIME_EXAMPLES)
    return seconds


def parse_gpus(value: str | int, option: str = "--gpus") -> Gpus:
    """`2` or `tesla:2`; `0` is the CPU on purpose."""
    match = _KIND_AND_COUNT.fullmatch(str(value))
    if match is None or (match["kind"] and not int(match["count"])):
        refuse(
            option,
            value,
            "a number, or a type and a number",
            fix="For example: --gpus 1, --gpus tesla:1, or --gpus 0 for the CPU.",
        )
    return Gpus(int(match["count"]), match["kind"])


def parse_memory(value: str, option: str = "--mem") -> str:
    """Memory per node, with its unit: a bare number is in mebibytes, as Slurm reads it. `0` is all of a node's."""
    match = _MEMORY.fullmatch(value)
    if match is None:
        refuse(option, value, "a whole number and K, M, G or T", fix="For example: --mem 16G (for each node).")
    number = int(match["number"])
    return f"{number}{(match['unit'] or 'M').upper()}" if number else "0"


def check_count(value: int, option: str) -> int:
    """A number of nodes, tasks or cores."""
    if not 1 <= value < 1_000_000:
        refuse(option, value, "a number of at least 1", fix=f"For example: {option} 1")
    return value


def is_name(text: str) -> bool:
    """Whether something that a scheduler printed can be the name of a queue, a node or an account.

    Names go to command lines, into files and on the screen. No scheduler allows names of more than 255 characters.
    """
    return 0 < len(text) <= _MAX_NAME and text.isprintable() and not text.startswith("-") and not re.search(r"\s", text)


def check_partition(value: str, option: str = "--partition") -> str:
    """A partition, or several with commas between: the job takes the one that starts it first."""
    if not _WORDS.fullmatch(value):
        refuse(option, value, "a partition name", fix="`sinfo` shows the partitions. For example: --partition gpu")
    return value


def check_account(value: str, option: str = "--account") -> str:
    """The account to charge."""
    return _word(value, option, "an account name", "For example: --account lab42")


def check_qos(value: str, option: str = "--qos") -> str:
    """A quality of service."""
    return _word(value, option, "a quality of service", "`sacctmgr show qos` lists them. For example: --qos high")


def check_constraint(value: str, option: str = "--constraint") -> str:
    """The features that the nodes of a job must have, as Slurm combines them: `a100&ib`."""
    if not is_name(value):
        refuse(option, value, "features of nodes", fix="`sinfo -o %f` lists them. For example: --constraint 'a100&ib'")
    return value


def check_module(value: str, option: str = "--module") -> str:
    """The name of an environment module, as `module load` takes it."""
    if not _MODULE.fullmatch(value):
        refuse(option, value, "the name of a module", fix="`module avail` lists them. For example: --module cuda/12.4")
    return value


def _word(value: str, option: str, right: str, fix: str) -> str:
    if not _WORD.fullmatch(value):
        refuse(option, value, right, fix=fix)
    return value


@dataclass(frozen=True, slots=True)
class TaskRange:
    """The task numbers from `first` to `last`, each `step` apart."""

    first: int
    last: int
    step: int = 1

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}-{self.last}" + (f":{self.step}" if self.step > 1 else "")


@dataclass(frozen=True, slots=True)
class Array:
    """The tasks of an array job. At most `limit` run at a time; None is no limit."""

    ranges: tuple[TaskRange, ...]
    limit: int | None = None

    def __str__(self) -> str:
        return ",".join(map(str, self.ranges)) + (f"%{self.limit}" if self.limit else "")

    @property
    def first(self) -> int:
        """The number of the task that is first in the list."""
        return self.ranges[0].first


def parse_array(value: str, option: str = "--array") -> Array:
    """The tasks of an array job: `0-9`, `1,3,5`, `0-90:10`, each perhaps with `%4` for four at a time."""
    parts, percent, at_once = value.partition("%")
    matches = [_ARRAY_PART.fullmatch(part) for part in parts.split(",")]
    ranges = tuple(
        TaskRange(int(match["first"]), int(match["last"] or match["first"]), int(match["step"] or 1))
        for match in matches
        if match
    )
    right_end = not percent or re.fullmatch(r"[1-9][0-9]{0,8}", at_once)
    if not right_end or len(ranges) < len(matches) or any(tasks.last < tasks.first for tasks in ranges):
        refuse(
            option,
            value,
            "numbers and ranges",
            fix="For example: --array 0-9, --array 1,3,7, or --array 0-99%8 for eight at a time.",
        )
    return Array(ranges, int(at_once) if percent else None)


def memory_mib(memory: str) -> int:
    """MiB of a memory size as parse_memory returns it, rounded up; 0 is all that a node has."""
    match = _MEMORY.fullmatch(memory)
    assert match is not None, memory  # noqa: S101
    kib = int(match["number"]) << {"K": 0, "M": 10, "G": 20, "T": 30}[match["unit"] or "M"]
    return -(-kib >> 10)


def clock_time(seconds: int) -> str:
    """Seconds as hours, minutes and seconds, which every scheduler reads: `100:00:00`."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}"
