"""Which Python a command of an image starts: by its path, the image's PATH, a script's first line, or `conda run`."""

from __future__ import annotations

import posixpath
import re
import shlex
from itertools import pairwise
from typing import TYPE_CHECKING

from toolkit.inventory.contents.interpreters import interpreter_at
from toolkit.inventory.contents.shell import Command, parse_script
from toolkit.inventory.formats.tree import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.inventory.contents.model import Interpreter
    from toolkit.inventory.formats.rootfs import Rootfs

_RUNSCRIPT = "/.singularity.d/runscript"
_LIMIT = 1 << 16
# What Apptainer writes into the runscript of an image from a registry.
_OCI = re.compile(r"^OCI_(ENTRYPOINT|CMD)='(.*)'$", re.MULTILINE)
# What stands before the program itself.
_BEFORE = ("exec", "env", "nohup", "nice", "time", "tini", "--", "-g")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_CONDA = ("conda", "mamba", "micromamba")
# The first lines of a script that pip wrote: the second form is for long paths.
_FIRST_LINE = re.compile(r"#!\s*(/[^\n]+)")
_LONG_PATH = re.compile(r"#!/bin/sh\n'''exec' [\"']?(/[^\s\"']+)")
_DEEPEST = 3  # a script that `env` starts


def started_python(
    rootfs: Rootfs, words: Sequence[str], path: str, interpreters: Iterable[Interpreter]
) -> Interpreter | None:
    """The interpreter that a command starts; None if it starts another program, or nothing says which one."""
    known = {(interpreter.prefix, interpreter.minor): interpreter for interpreter in interpreters}
    try:
        return _started(rootfs, list(words), path, known, 0)
    except Unreadable:  # another user's sandbox
        return None


def runscript(rootfs: Rootfs) -> list[str]:
    """The words of the last command of the image's runscript; [] if there is none, or it cannot be read."""
    text = rootfs.read_text(_RUNSCRIPT, _LIMIT) or ""
    told = dict(_OCI.findall(text))
    commands = [node for node in parse_script(text) if isinstance(node, Command)] if not told else []
    line = (
        f"{told.get('ENTRYPOINT', '')} {told.get('CMD', '')}"
        if told
        else " ".join(commands[-1].words if commands else ())
    )
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _started(
    rootfs: Rootfs, words: list[str], path: str, known: dict[tuple[str, str], Interpreter], depth: int
) -> Interpreter | None:
    while words and (words[0] in _BEFORE or posixpath.basename(words[0]) == "env" or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    program = _found(rootfs, words[0], path) if words else None
    if program is None or depth > _DEEPEST:
        return None
    if posixpath.basename(program) in _CONDA and words[1:2] == ["run"]:
        return _of_conda_run(rootfs, program, words[2:], known)
    found = interpreter_at(rootfs, program)
    if found is not None:
        return known.get((found[0], found[1].rstrip("t")))
    head = (rootfs.read_text(program, _LIMIT) or "")[:1024]
    match = _LONG_PATH.match(head) or _FIRST_LINE.match(head)
    return _started(rootfs, match[1].split(), path, known, depth + 1) if match else None


def _found(rootfs: Rootfs, word: str, path: str) -> str | None:
    """The file that a word of a command means."""
    if "/" in word:
        return word if word.startswith("/") and rootfs.is_file(word) else None
    places = (posixpath.join(directory, word) for directory in path.split(":") if directory.startswith("/"))
    return next((place for place in places if rootfs.is_file(place)), None)


def _of_conda_run(
    rootfs: Rootfs, conda: str, options: list[str], known: dict[tuple[str, str], Interpreter]
) -> Interpreter | None:
    """The Python of the environment that `conda run -n NAME` or `-p PATH` names."""
    root = posixpath.dirname(posixpath.dirname(rootfs.resolve(conda) or conda))
    for option, value in pairwise(options):
        if option in ("-n", "--name", "-p", "--prefix"):
            prefix = f"{root}/envs/{value}" if option in ("-n", "--name") else value
            return next((found for (known_prefix, _), found in known.items() if known_prefix == prefix), None)
    return None
