"""Which Python a command of an image starts: by its path, the image's PATH, a script, a wrapper, or `conda run`."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, field, replace
from itertools import count, islice
from typing import TYPE_CHECKING

from toolkit.inventory.contents.interpreters import interpreter_at, is_python, is_script
from toolkit.inventory.contents.shell import Choice, Command, Loop, parse_script
from toolkit.inventory.formats.tree import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolkit.inventory.contents.model import Interpreter
    from toolkit.inventory.contents.shell import Block
    from toolkit.inventory.formats.rootfs import Rootfs

_RUNSCRIPT = "/.singularity.d/runscript"
_LIMIT = 1 << 16  # bytes of a script that are read; most programs are no scripts, and larger
# What Apptainer writes into the runscript of an image from a registry.
_OCI = re.compile(r"^OCI_(ENTRYPOINT|CMD)='(.*)'$", re.MULTILINE)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
_CONDA = ("conda", "mamba", "micromamba")
# Programs that start the command among their arguments.
_WRAPPERS = frozenset({
    "exec", "command", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "setsid", "taskset", "numactl", "chrt",
    "tini", "dumb-init", "catatonit", "gosu", "su-exec", "mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun",
    "srun", "nsys", "ncu", "compute-sanitizer", "strace", "xvfb-run",
})  # fmt: skip
# The first lines of a script that pip wrote: the second form is for long paths.
_FIRST_LINE = re.compile(r"#!\s*(/[^\n]+)")
_LONG_PATH = re.compile(r"#!/bin/sh\n'''exec' [\"']?(/[^\s\"']+)")
_DEEPEST = 8  # a runscript, a script that it starts, `env`, a wrapper, …
_MAX_SCRIPTS = 30
_MAX_WORDS = 1000  # of one command


def started_python(
    rootfs: Rootfs, words: Sequence[str], path: str, interpreters: Iterable[Interpreter]
) -> Interpreter | None:
    """The interpreter that a command starts; None if it starts another program, or nothing says which one."""
    known = {(interpreter.prefix, interpreter.minor): interpreter for interpreter in interpreters}
    try:
        return _Search(rootfs, known, path).of_command(list(words))
    except Unreadable:  # another user's sandbox
        return None


def runscript(rootfs: Rootfs) -> list[str]:
    """The command by which the image's runscript is run; [] if there is none, or it cannot be read."""
    text = rootfs.read_start(_RUNSCRIPT, _LIMIT)
    told = dict(_OCI.findall(text or ""))
    if text is None or not told:
        return ["/bin/sh", _RUNSCRIPT] if text else []
    return _split(f"{told.get('ENTRYPOINT', '')} {told.get('CMD', '')}")


@dataclass(frozen=True, slots=True)
class _Search:
    """Where programs are looked for: `path` is PATH at this place of a script, "" if it is not known.

    `arguments` are what `"$@"` stands for.
    """

    rootfs: Rootfs
    known: Mapping[tuple[str, str], Interpreter]
    path: str
    arguments: tuple[str, ...] = ()
    depth: int = 0
    read: Iterator[int] = field(default_factory=count)  # one for all searches that come from this one

    def of_command(self, words: list[str]) -> Interpreter | None:
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        if not words or self.depth > _DEEPEST:
            return None
        deeper, name = replace(self, depth=self.depth + 1), posixpath.basename(words[0])
        if name == "env":
            return deeper.of_command(_after_env(words[1:]))
        if name in _SHELLS:
            return deeper.of_shell(words[1:])
        if name in _WRAPPERS:
            return deeper.of_wrapper(words[1:])
        return deeper.of_program(words)

    def of_wrapper(self, words: list[str]) -> Interpreter | None:
        """What a wrapper starts: its options and their values are no Pythons."""
        for place, word in enumerate(words):
            name = posixpath.basename(word)
            if name == "env" or name in _SHELLS:
                return self.of_command(words[place:])
            found = self.of_program(words[place:]) if name not in _WRAPPERS else None
            if found is not None:
                return found
        return None

    def of_program(self, words: list[str]) -> Interpreter | None:
        program = self.found(words[0])
        if program is None:
            return None
        if posixpath.basename(program) in _CONDA and words[1:2] == ["run"]:
            return self.of_conda_run(program, words[2:])
        if is_python(self.rootfs, program) and not is_script(self.rootfs, program):
            key = interpreter_at(self.rootfs, program)
            return self.known.get((key[0], key[1].rstrip("t"))) if key else None
        head = self.text(program)[:1024]
        match = _LONG_PATH.match(head) or _FIRST_LINE.match(head)
        return self.of_command([*match[1].split(), program, *words[1:]]) if match else None

    def of_shell(self, words: list[str]) -> Interpreter | None:
        """What `bash -c TEXT` and `bash FILE` start, where the file is in the image."""
        while words and words[0].startswith(("-", "+")):
            if re.fullmatch(r"-\w*c", words[0]):
                return self.of_text(words[1], words[3:]) if len(words) > 1 else None
            words = words[2:] if words[0] in ("-o", "+o", "-O", "+O") else words[1:]
        text = self.text(words[0]) if words and words[0].startswith("/") else ""
        long_path = _LONG_PATH.match(text)
        return self.of_command([long_path[1]]) if long_path else self.of_text(text, words[1:])

    def text(self, script: str) -> str:
        """The text of a script; none of scripts without end that start one another."""
        return self.rootfs.read_start(script, _LIMIT) or "" if next(self.read) < _MAX_SCRIPTS else ""

    def of_text(self, text: str, arguments: Sequence[str]) -> Interpreter | None:
        return replace(self, arguments=tuple(arguments)).of_block(parse_script(text))

    def of_block(self, block: Block) -> Interpreter | None:
        """The last Python that a script starts; None where branches start different ones."""
        search, last = self, None
        for node in block:
            if isinstance(node, Command):
                words = search.expanded(node.words)
                search = search.after(words)
                last = search.of_command(words) or last
            elif isinstance(node, Choice | Loop):
                parts = node.options if isinstance(node, Choice) else (node.body,)
                started = {found.path: found for found in map(search.of_block, parts) if found}
                last = (next(iter(started.values())) if len(started) == 1 else None) if started else last
        return last

    def expanded(self, words: Iterable[str]) -> list[str]:
        """Words without quotes, and with the script's arguments."""
        plain = (self.arguments if word in ('"$@"', "$@", "$*") else _split(word) for word in words)
        return list(islice((word for group in plain for word in group), _MAX_WORDS))

    def after(self, words: list[str]) -> _Search:
        """The search with the PATH that a command leaves: an assignment, or an environment that it activates."""
        name = words[0] if words else ""
        assigned = words[1:] if name == "export" else words if all(map(_ASSIGNMENT.match, words)) else []
        for word in assigned:
            if word.startswith("PATH="):
                value = re.sub(r"\$(\{PATH\}|PATH\b)", lambda _: self.path, word.removeprefix("PATH="))
                return replace(self, path="" if "$" in value or not self.path else value)
        if name in (".", "source") and len(words) > 1 and posixpath.basename(words[1]) == "activate":
            directory = posixpath.dirname(words[1])
            conda = any(self.rootfs.is_file(f"{directory}/{program}") for program in _CONDA)
            return self.activated(words[2] if len(words) > 2 else "base") if conda else self.before(directory)
        if posixpath.basename(name) in _CONDA and words[1:2] == ["activate"]:
            return self.activated(words[2] if len(words) > 2 else "base")
        return self

    def activated(self, environment: str) -> _Search:
        """After `conda activate`; PATH is not known if no environment or several have the name."""
        prefixes = {prefix for prefix, _ in self.known}
        if environment == "base":
            own = [prefix for prefix in prefixes if self.rootfs.is_file(f"{prefix}/bin/conda")]
        else:
            own = [prefix for prefix in prefixes if environment == prefix or prefix.endswith(f"/envs/{environment}")]
        return self.before(f"{own[0]}/bin") if len(own) == 1 else replace(self, path="")

    def before(self, directory: str) -> _Search:
        return replace(self, path=f"{directory}:{self.path}" if directory.startswith("/") else "")

    def found(self, word: str) -> str | None:
        """The file that a word of a command means."""
        if "/" in word:
            return word if word.startswith("/") and self.rootfs.is_file(word) else None
        places = (posixpath.join(directory, word) for directory in self.path.split(":") if directory.startswith("/"))
        return next((place for place in places if self.rootfs.is_file(place)), None)

    def of_conda_run(self, conda: str, words: list[str]) -> Interpreter | None:
        """What `conda run -n NAME COMMAND` starts: the Python of the environment, unless the command names another."""
        root = posixpath.dirname(posixpath.dirname(self.rootfs.resolve(conda) or conda))
        prefix = root
        while words and words[0].startswith("-"):
            option, equals, value = words[0].partition("=")
            takes = not equals and option in ("-n", "--name", "-p", "--prefix", "--cwd")
            value, words = (words[1] if takes and len(words) > 1 else value), words[2:] if takes else words[1:]
            if option in ("-n", "--name"):
                prefix = root if value == "base" else f"{root}/envs/{value}"
            elif option in ("-p", "--prefix"):
                prefix = value
        own = next((found for (known, _), found in self.known.items() if known == prefix), None)
        return (self.before(f"{prefix}/bin").of_command(words) or own) if own else None


def _after_env(words: list[str]) -> list[str]:
    """The command of `env`: after its options, with the text of `-S` split."""
    while words and words[0].startswith("-"):
        if words[0].startswith(("-S", "--split-string")):
            text = words[0].removeprefix("--split-string").removeprefix("-S").lstrip("=")
            return [*_split(text), *(words[1:] if text else [*_split(" ".join(words[1:2])), *words[2:]])]
        words = words[2:] if words[0] in ("-u", "--unset", "-C", "--chdir") else words[1:]
    return words


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []
