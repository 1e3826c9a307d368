"""The variables that an image sets: what Apptainer wrote from Docker's configuration and from `%environment`.

Nothing is run: the scripts are parsed as a shell would. If only running one would determine a variable, the
variable holds all that it may become, as far as that is known, and is named as uncertain.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit.inventory.contents.model import Uncertain
from toolkit.inventory.contents.shell import (
    Block,
    Choice,
    Command,
    Function,
    Loop,
    after,
    end_of_reference,
    parse_script,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from toolkit.inventory.formats.rootfs import Rootfs

_DIRECTORY = "/.singularity.d/env"
# The runtime's own scripts; what they set depends on the host (99-base.sh appends /.singularity.d/libs).
_RUNTIME = re.compile(r"^(01-base|94-appsbase|95-apps|99-.*)\.sh$")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[1-9]")
_BRACES = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[1-9])(?:(:?[-+])(.*))?", re.DOTALL)
_DECLARING = ("export", "declare", "typeset", "readonly", "local")
# Variables that the runtime takes over from the host.
_OF_THE_HOST = re.compile(r"HOME|USER|LOGNAME|PWD|HOSTNAME|TMPDIR|SHELL|(SINGULARITY|APPTAINER|SLURM)_.*")
_LISTS = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH")  # what a script that cannot be followed may change
_CHANGES_ANYTHING = ("eval", "conda", "mamba", "micromamba", "module", "ml", "spack")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # Apptainer's, where an image sets none
_UNKNOWN = "\0"  # marks a part of a value that only running the script determines
_LONGEST_VALUE = 1 << 16
_LIMIT = 1 << 20
_DEEPEST = 10
_MAX_ITEMS = 64
_MAX_STEPS = 10_000


@dataclass(slots=True)
class Environment:
    """The result of the scripts: the value of each variable, and which of them are uncertain."""

    variables: dict[str, str]
    conditional: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Block] = field(default_factory=dict)

    def copy(self) -> Environment:
        return Environment(dict(self.variables), dict(self.conditional), dict(self.functions))


def read_environment(rootfs: Rootfs) -> tuple[dict[str, str], tuple[Uncertain, ...]]:
    """The image's variables after all its scripts, and those that are uncertain; PATH is always there."""
    found = Environment({"PATH": _DEFAULT_PATH})
    changed: dict[str, str] = {}
    for name in rootfs.names(_DIRECTORY):
        if name.endswith(".sh") and not _RUNTIME.match(name):
            before = dict(found.variables)
            _Script(name, rootfs).carry_out(rootfs.read_text(f"{_DIRECTORY}/{name}", _LIMIT) or "", found)
            changed |= {variable: name for variable, value in found.variables.items() if before.get(variable) != value}
    unknown = {name for name, value in found.variables.items() if _UNKNOWN in value}
    uncertain = [Uncertain(name, changed.get(name, ""), open=True) for name in sorted(unknown)]
    conditional = {name: script for name, script in sorted(found.conditional.items()) if name not in unknown}
    uncertain += [Uncertain(name, script, open=False) for name, script in conditional.items()]
    return {name: _known(value) for name, value in found.variables.items()}, tuple(uncertain)


def _known(value: str) -> str:
    """A value without what is unknown in it: of a list of directories only those known as a whole are left."""
    return ":".join(part for part in value.split(":") if _UNKNOWN not in part) if _UNKNOWN in value else value


class _Script:
    """One script, applied to an environment as far as its effect can be determined without running it."""

    def __init__(self, name: str, rootfs: Rootfs) -> None:
        self._name = name
        self._rootfs = rootfs
        self._steps = 0
        self._depth = 0

    def carry_out(self, text: str, state: Environment) -> None:
        self._block(parse_script(text), state)

    def _block(self, block: Block, state: Environment) -> None:
        self._depth += 1
        for node in block:
            self._steps += 1
            if self._steps > _MAX_STEPS or self._depth > 4 * _DEEPEST:
                _may_change(_LISTS, state)
                break
            if isinstance(node, Command):
                self._command(node.words, state)
            elif isinstance(node, Choice):
                self._choice(node, state)
            elif isinstance(node, Loop):
                self._loop(node, state)
            elif isinstance(node, Function):
                state.functions[node.name] = node.body
        self._depth -= 1

    def _command(self, words: tuple[str, ...], state: Environment) -> None:
        declaring = words[0] in _DECLARING
        values: list[tuple[str, str]] = []
        rest = [word for word in words if not (declaring and word.startswith("-"))][declaring:]
        while rest and (match := _ASSIGNMENT.fullmatch(rest[0])):
            name, adds, value = match.groups()
            before = state.variables.get(name, "") if adds else ""
            values.append((name, before + _expanded(value, state.variables)))
            self._remember_condition(name, value, state)
            rest = rest[1:]
            if rest and declaring and not _ASSIGNMENT.fullmatch(rest[0]):
                rest = [word for word in rest if _ASSIGNMENT.fullmatch(word)]
        if not rest or declaring:  # before a command, an assignment is for that command alone
            state.variables.update(values)
        elif not values:
            self._run(rest, state)

    def _remember_condition(self, name: str, value: str, state: Environment) -> None:
        """A value that refers to an uncertain variable is as uncertain."""
        state.conditional.pop(name, None)
        used = [name for name in state.conditional if re.search(rf"\$\{{?{name}\b", value)]
        if used or (name in value and name in state.conditional):
            state.conditional[name] = state.conditional[used[0]] if used else self._name

    def _run(self, words: list[str], state: Environment) -> None:
        program, *arguments = (_expanded(word, state.variables) for word in words)
        if program in (".", "source") and arguments:
            self._source(arguments[0], state)
        elif program == "unset":
            for name in arguments:
                state.variables.pop(name, None)
                state.conditional.pop(name, None)
        elif program == "read":
            state.variables.update({name: _UNKNOWN for name in arguments if _NAME.fullmatch(name)})
        elif program in state.functions:
            state.variables.update({str(place): value for place, value in enumerate(arguments[:9], 1)})
            self._block(state.functions[program], state)
        elif program in _CHANGES_ANYTHING or _UNKNOWN in program:
            _may_change(_LISTS, state)

    def _source(self, path: str, state: Environment) -> None:
        text = None
        if path.startswith("/") and _UNKNOWN not in path and self._rootfs.is_file(path):
            text = self._rootfs.read_text(path, _LIMIT) if (self._rootfs.size(path) or 0) <= _LIMIT else None
        if text is None or self._depth > _DEEPEST:
            _may_change(_LISTS, state)
        else:
            self._block(parse_script(text), state)

    def _choice(self, node: Choice, state: Environment) -> None:
        """Evaluate each possible branch separately, and merge the results."""
        outcomes: list[Environment] = []
        decided = False
        for number, option in enumerate(node.options):
            test = node.tests[number] if number < len(node.tests) else ()
            outcome = state.copy()
            self._block(option, outcome)
            outcomes.append(outcome)
            decided = self._holds(test, state)
            if decided:
                break
        if not (decided or node.exhaustive):
            outcomes.append(state.copy())
        self._unite(outcomes, state)

    def _holds(self, test: Block, state: Environment) -> bool:
        """Whether a condition is certainly true: the tested file or directory is in the image."""
        if len(test) != 1 or not isinstance(test[0], Command):
            return False
        words = [_expanded(word, state.variables) for word in test[0].words]
        if words[:1] == ["test"] or (words[:1], words[-1:]) in ((["["], ["]"]), (["[["], ["]]"])):
            words = words[1:] if words[0] == "test" else words[1:-1]
        else:
            return False
        asked: dict[str, Callable[[str], bool]] = {
            "-e": self._rootfs.exists, "-f": self._rootfs.is_file, "-d": self._rootfs.is_directory,
            "-r": self._rootfs.exists, "-s": self._rootfs.is_file,
        }  # fmt: skip
        return len(words) == 2 and words[0] in asked and words[1].startswith("/") and asked[words[0]](words[1])

    def _unite(self, outcomes: list[Environment], state: Environment) -> None:
        names = dict.fromkeys(name for outcome in outcomes for name in outcome.variables)
        for name in names:
            values = list(
                dict.fromkeys(value for outcome in outcomes if (value := outcome.variables.get(name)) is not None)
            )
            if len(values) > 1 or any(name not in outcome.variables for outcome in outcomes):
                state.conditional[name] = self._name
            state.variables[name] = _united(values) if name in _LISTS else values[0]
        for outcome in outcomes:
            state.functions |= outcome.functions
            state.conditional |= outcome.conditional

    def _loop(self, node: Loop, state: Environment) -> None:
        items = [_expanded(word, state.variables) for word in node.words]
        if node.name and len(items) <= _MAX_ITEMS and not any(set(item) & set("*?[" + _UNKNOWN) for item in items):
            for item in items:
                state.variables[node.name] = item
                self._block(node.body, state)
            return
        before = dict(state.variables)
        if node.name:
            state.variables[node.name] = _UNKNOWN
        self._block(node.body, state)
        changed = [name for name, value in state.variables.items() if before.get(name) != value]
        state.variables |= before
        _may_change(changed, state)


def _may_change(names: Iterable[str], state: Environment) -> None:
    for name in names:
        before = state.variables.get(name, "")
        state.variables[name] = before if _UNKNOWN in before else f"{before}:{_UNKNOWN}"


def _united(values: list[str]) -> str:
    """One list that holds the directories of all."""
    return ":".join(dict.fromkeys(part for value in values for part in value.split(":") if part))[:_LONGEST_VALUE]


def _expanded(word: str, variables: dict[str, str], depth: int = 0) -> str:
    """A word without its quotes, its references replaced."""
    found: list[str] = []
    length, place, quoted = 0, 0, False
    while place < len(word) and length < _LONGEST_VALUE:
        character, end = word[place], place + 1
        if character == "'" and not quoted:
            end = after(word, place)
            character = word[place + 1 : end - 1]
        elif character == '"':
            character, quoted = "", not quoted
        elif character == "\\" and (not quoted or word[end : end + 1] in ("$", "`", '"', "\\")):
            character, end = word[end : end + 1], end + 1
        elif character == "`" or word.startswith("$(", place):
            character, end = _UNKNOWN, after(word, place)
        elif word.startswith("${", place):
            end = end_of_reference(word, place)
            character = _reference(word[place + 2 : end - 1], variables, depth)
        elif character == "$" and (match := _NAME.match(word, end)):
            character, end = _value(match[0], variables) or "", match.end()
        elif character == "$" and word[end : end + 1] in tuple("?@*#$!0-"):
            character, end = _UNKNOWN, end + 1
        elif character == "\0":
            character = ""
        found.append(character)
        length += len(character)
        place = end
    return "".join(found)[:_LONGEST_VALUE]


def _value(name: str, variables: dict[str, str]) -> str | None:
    value = variables.get(name)
    return _UNKNOWN if value is None and (name.isdigit() or _OF_THE_HOST.fullmatch(name)) else value


def _reference(inner: str, variables: dict[str, str], depth: int) -> str:
    """The value of `${inner}`: NAME, NAME:-WORD, NAME-WORD, NAME:+WORD, NAME+WORD; anything else is unknown."""
    match = _BRACES.fullmatch(inner)
    if match is None or depth > _DEEPEST:
        return _UNKNOWN
    name, operator, word = match.groups()
    value = _value(name, variables)
    there = value is not None and (value != "" or operator in ("-", "+"))
    if operator in (":+", "+"):
        return _expanded(word, variables, depth + 1) if there else ""
    if operator and not there:
        return _expanded(word, variables, depth + 1)
    return value or ""
