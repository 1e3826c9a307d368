"""What a user may write for each resource: every check gives the value in its one form, or says what is right."""

from __future__ import annotations

import re
from typing import NoReturn

from toolkit.jobs.model import NO_TIME_LIMIT, SIGNALS, Directive, Gpus
from toolkit.support.errors import WrongInput
from toolkit.support.text import one_line

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_KIND_AND_COUNT = re.compile(r"(?:(?P<kind>[A-Za-z0-9][A-Za-z0-9._-]*):)?(?P<count>[0-9]{1,6})")
_MEMORY = re.compile(r"(?P<number>[0-9]{1,9})(?:(?P<unit>[KMGTkmgt])[Bb]?)?")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]*")
_WORDS = re.compile(rf"{_WORD.pattern}(?:,{_WORD.pattern})*")
_ARRAY_PART = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})(?::(?P<step>[1-9][0-9]{0,8}))?)?")
_SIGNAL = re.compile(rf"(?:[BR]{{1,2}}:)?(?:SIG)?(?:{'|'.join(SIGNALS)})(?:@[0-9]{{1,5}})?")  # sbatch(1), --signal
_DIRECTIVE = re.compile(r"--(?P<name>[a-z][a-z0-9-]*)(?:=(?P<value>.+))?")

# sbatch(1), --time. Seven digits hold two years of minutes and cannot overflow Slurm's counters.
_NUMBER = "[0-9]{1,7}"
_TIMES = (
    re.compile(rf"(?P<minutes>{_NUMBER})(?::(?P<seconds>{_NUMBER}))?"),
    re.compile(rf"(?P<hours>{_NUMBER}):(?P<minutes>{_NUMBER}):(?P<seconds>{_NUMBER})"),
    re.compile(rf"(?P<days>{_NUMBER})-(?P<hours>{_NUMBER})(?::(?P<minutes>{_NUMBER})(?::(?P<seconds>{_NUMBER}))?)?"),
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}

# Options of sbatch that ctk writes itself, and what to use instead.
_OWN_DIRECTIVES = {
    "account": "use --account",
    "array": "use --array",
    "chdir": "the job runs in the directory that it is submitted from: change to that directory first",
    "cpus-per-task": "use --cpus-per-task",
    "error": "errors go to the job's log, logs/NAME-ID.log, in the order in which they happen",
    "gpus": "use --gpus",
    "job-name": "use --job-name",
    "mem": "use --mem",
    "nodes": "use --nodes",
    "ntasks": "use --nodes and --ntasks-per-node",
    "ntasks-per-node": "use --ntasks-per-node",
    "open-mode": "the log of a requeued job is always continued",
    "output": "the log is logs/NAME-ID.log, made in a way that cannot lose it",
    "partition": "use --partition",
    "time": "use --time",
    "wrap": "give the command after --",
}


def _refuse(option: str, value: object, right: str, *, fix: str | None = None) -> NoReturn:
    raise WrongInput(f"{option} should be {right}, not {value!r}", fix=fix)


def check_name(value: str, option: str = "--job-name") -> str:
    """A job's name. It becomes part of the log's file name: Slurm copies any character there, `/` and newline too."""
    if not _NAME.fullmatch(value):
        _refuse(
            option,
            value,
            "letters, digits, dots, dashes and underscores, not beginning with a dot or a dash, at most 128 of them",
            fix="For example: --job-name keras-bert.lr-0.1",
        )
    return value


def name_for(text: str) -> str:
    """The job's name nearest to `text`, which may be any file's: `my image` -> `my-image`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:128] or "job"


def parse_time(value: str, option: str = "--time") -> int:
    """Seconds of a time limit in any of Slurm's notations (sbatch(1), --time); NO_TIME_LIMIT for none."""
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return NO_TIME_LIMIT
    for notation in _TIMES:
        if match := notation.fullmatch(value):
            return sum(_SECONDS[unit] * int(number) for unit, number in match.groupdict(default="0").items())
    _refuse(
        option,
        value,
        "minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds "
        "or UNLIMITED",
        fix="For example: --time 4:00:00 for four hours, --time 30 for thirty minutes, --time 2-12 for two days and a "
        "half.",
    )


def parse_gpus(value: str, option: str = "--gpus") -> Gpus:
    """`2` or `tesla:2`; `0` is the CPU on purpose."""
    match = _KIND_AND_COUNT.fullmatch(value)
    if match is None or (match["kind"] and not int(match["count"])):
        _refuse(
            option,
            value,
            "a number, or a kind and a number",
            fix="For example: --gpus 1, --gpus tesla:1, or --gpus 0 for the CPU.",
        )
    return Gpus(int(match["count"]), match["kind"])


def parse_memory(value: str, option: str = "--mem") -> str:
    """Memory per node, with its unit: a bare number is in mebibytes, as Slurm reads it. `0` is all of a node's."""
    match = _MEMORY.fullmatch(value)
    if match is None:
        _refuse(option, value, "a whole number and K, M, G or T", fix="For example: --mem 16G, which is for each node.")
    number = int(match["number"])
    return f"{number}{(match['unit'] or 'M').upper()}" if number else "0"


def check_count(value: int, option: str) -> int:
    """A number of nodes, tasks or cores."""
    if not 1 <= value < 1_000_000:
        _refuse(option, value, "a number from 1 on", fix=f"For example: {option} 1")
    return value


def check_partition(value: str, option: str = "--partition") -> str:
    """A partition, or several with commas between: the job takes the one that starts it first."""
    if not _WORDS.fullmatch(value):
        _refuse(option, value, "a partition's name", fix="`sinfo` shows the partitions. For example: --partition gpu")
    return value


def check_account(value: str, option: str = "--account") -> str:
    """The account that pays."""
    if not _WORD.fullmatch(value):
        _refuse(option, value, "an account's name", fix="For example: --account lab42")
    return value


def check_array(value: str, option: str = "--array") -> str:
    """The task numbers of an array job: `0-9`, `1,3,5`, `0-90:10`, each perhaps with `%4` for four at a time."""
    parts, percent, at_once = value.partition("%")
    matches = [_ARRAY_PART.fullmatch(part) for part in parts.split(",")]
    right_end = not percent or re.fullmatch(r"[1-9][0-9]{0,8}", at_once)
    if not right_end or not all(match and int(match["last"] or match["first"]) >= int(match[1]) for match in matches):
        _refuse(
            option,
            value,
            "numbers and ranges",
            fix="For example: --array 0-9, --array 1,3,7, or --array 0-99%8 for eight at a time.",
        )
    return value


def check_bind(value: str, option: str = "--bind") -> str:
    """A directory that the container is to see: SRC, SRC:DST or SRC:DST:ro."""
    one_line(value, option)
    source, *rest = value.split(":")
    # The runtime reads a comma as the beginning of the next bind.
    good = bool(source) and not source.startswith("-") and "," not in value and len(rest) <= 2
    good = good and all(part.startswith("/") for part in rest[:1]) and all(part in ("ro", "rw") for part in rest[1:])
    if not good:
        _refuse(
            option,
            value,
            "SRC, SRC:DST or SRC:DST:ro, with an absolute DST and no comma",
            fix="For example: --bind /scratch/data:/data:ro; several directories by several --bind.",
        )
    return value


def parse_directive(value: str) -> Directive:
    """Any other option of sbatch, `--name=value` or `--name`. What ctk writes itself is refused, abbreviated too."""
    match = _DIRECTIVE.fullmatch(value)
    if match is None:
        _refuse("--directive", value, "--name=value or --name", fix="For example: --directive=--constraint=a100")
    name, content = match["name"], match["value"]
    # sbatch reads its options with getopt_long, which completes `--out` to `--output`.
    own = next((own for own in sorted(_OWN_DIRECTIVES) if own.startswith(name)), None)
    if own is not None:
        raise WrongInput(f"--directive {value!r}: ctk writes --{own} itself", fix=f"Instead: {_OWN_DIRECTIVES[own]}.")
    if content is not None:
        one_line(content, f"--directive --{name}")
        if not content.isascii() or any(character in "\"'\\" for character in content):
            _refuse(f"--directive --{name}", content, "plain ASCII without quotes and backslashes")
    if name == "signal" and not _SIGNAL.fullmatch(content or ""):
        _refuse(
            "--directive --signal",
            content,
            f"one of {', '.join(SIGNALS)}, which the script passes on, and the seconds before the time limit",
            fix="For example: --directive=--signal=USR1@300",
        )
    return Directive(name, content)


def check_submission_directory(directory: str) -> str:
    """The directory that the job is submitted from, and that Slurm opens the job's log in.

    Raises WrongInput where Slurm cannot: it takes a backslash anywhere in the path for its own escape and then expands
    no `%j` (sbatch(1), filename pattern), and the job would end as 0:53 without a log. A path with `%` has to be
    written into an `#SBATCH` line, which knows no way to quote a quotation mark or a control character.
    """
    fix = "Rename the directory, or submit from another one."
    if "\\" in directory:
        raise WrongInput(f"Slurm cannot open a log in a directory with a backslash in its name: {directory}", fix=fix)
    if "%" in directory and (not directory.isprintable() or any(character in "\"'" for character in directory)):
        raise WrongInput(f"Slurm cannot open a log in a directory with both a % and a quote: {directory!r}", fix=fix)
    return directory
