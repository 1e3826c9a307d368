"""The variables that an image sets: what Apptainer wrote from Docker's configuration and from `%environment`.

Nothing is run: the assignments are read as a shell would, with the words and references that such files are made of.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolkit.inventory.rootfs import Rootfs

_FOLDER = "/.singularity.d/env"
# The runtime's own scripts; what they set depends on the host (99-base.sh appends /.singularity.d/libs).
_RUNTIME = re.compile(r"^(01-base|94-appsbase|95-apps|99-.*)\.sh$")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-+])(.*))?", re.DOTALL)
# Words after which a command begins: what it assigns, counts. Whether an `if` holds is not known; it is taken to.
_BEFORE_A_COMMAND = ("export", "then", "else", "do", "{", "!")
_ENDS = frozenset(" \t\n;&|")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # Apptainer's, where an image sets none
_LONGEST_VALUE = 1 << 16
_LIMIT = 1 << 20
_DEEPEST = 10


def read_environment(rootfs: Rootfs) -> dict[str, str]:
    """The image's variables after all its scripts, references to one another resolved; PATH is always there."""
    variables = {"PATH": _DEFAULT_PATH}
    for name in rootfs.names(_FOLDER):
        if name.endswith(".sh") and not _RUNTIME.match(name):
            apply_script(rootfs.read_text(f"{_FOLDER}/{name}", _LIMIT) or "", variables)
    return variables


def apply_script(script: str, variables: dict[str, str]) -> None:
    """Carry out the assignments of a script on `variables`, and its `unset`."""
    for command in _commands(script):
        words = list(dropwhile(lambda word: word in _BEFORE_A_COMMAND, command))
        if words[:1] == ["unset"]:
            for name in words[1:]:
                variables.pop(_expanded(name, variables), None)
            continue
        for word in command:
            match = _ASSIGNMENT.fullmatch(word)
            if match:
                variables[match[1]] = _expanded(match[2], variables)
            elif word not in _BEFORE_A_COMMAND:
                break


def _commands(script: str) -> Iterator[list[str]]:
    """The words of each command, quotes and references still in them."""
    text = script.replace("\\\n", "") + "\n"
    words: list[str] = []
    start = place = 0
    while place < len(text):
        if text[place] in _ENDS:
            words += [text[start:place]] if place > start else []
            if words and text[place] not in " \t":
                yield words
                words = []
            place = start = place + 1
        elif text[place] == "#" and place == start:
            place = start = text.index("\n", place)
        else:
            place = _after(text, place)


def _after(text: str, place: int) -> int:
    """The place after what begins at `place`: a quoted text, a reference in braces, or one character."""
    if text.startswith("\\", place):
        return place + 2
    if text.startswith("'", place):
        return text.find("'", place + 1) + 1 or len(text)
    if text.startswith("${", place):
        return _end_of_braces(text, place)
    if text.startswith('"', place):
        place += 1
        while place < len(text) and text[place] != '"':
            place = _end_of_braces(text, place) if text.startswith("${", place) else place + 1 + (text[place] == "\\")
    return place + 1


def _end_of_braces(text: str, place: int) -> int:
    depth = 0
    while place < len(text):
        if text.startswith("${", place):
            depth += 1
        elif text[place] == "}":
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    return place


def _expanded(word: str, variables: Mapping[str, str], depth: int = 0) -> str:
    """A word without its quotes, its references replaced."""
    found: list[str] = []
    length, place, quoted = 0, 0, False
    while place < len(word) and length < _LONGEST_VALUE:
        character, end = word[place], place + 1
        if character == "'" and not quoted:
            end = _after(word, place)
            character = word[place + 1 : end - 1]
        elif character == '"':
            character, quoted = "", not quoted
        elif character == "\\" and (not quoted or word[end : end + 1] in ("$", "`", '"', "\\")):
            character, end = word[end : end + 1], end + 1
        elif word.startswith("${", place):
            end = _end_of_braces(word, place)
            character = _reference(word[place + 2 : end - 1], variables, depth)
        elif character == "$" and (match := _NAME.match(word, end)):
            character, end = variables.get(match[0], ""), match.end()
        found.append(character)
        length += len(character)
        place = end
    return "".join(found)[:_LONGEST_VALUE]


def _reference(inner: str, variables: Mapping[str, str], depth: int) -> str:
    """What stands for `${inner}`: NAME, NAME:-WORD, NAME-WORD, NAME:+WORD, NAME+WORD; of anything else nothing."""
    match = _BRACES.fullmatch(inner)
    if match is None or depth > _DEEPEST:
        return ""
    name, operator, word = match.groups()
    value = variables.get(name)
    there = value is not None and (value != "" or operator in ("-", "+"))
    if operator in (":+", "+"):
        return _expanded(word, variables, depth + 1) if there else ""
    if operator and not there:
        return _expanded(word, variables, depth + 1)
    return value or ""
