"""Jupyter notebooks: the code of their cells as trees, and what their cells install with pip."""

from __future__ import annotations

import ast
import json
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.pins.authoring.package_lists import Lines, PackageList
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# `%pip install …`, `!pip install …`, `!{sys.executable} -m pip install …`
_INSTALL = re.compile(r"^\s*(?:%|!)\s*(?:\S+\s+-m\s+)?pip3?\s+install\s+(.+)$")
_OTHER_INSTALLER = re.compile(r"^\s*[%!]\s*(conda|mamba|apt|apt-get)\s+(?:-\S+\s+)*install\s+(.+)$")
# Cell magics whose cell is Python; any other is of another language.
_PYTHON_CELLS = ("capture", "time", "timeit", "prun", "python", "python3", "pypy")
# A line for IPython: a magic, a shell command, a question, or an assignment of one.
_FOR_IPYTHON = re.compile(r"^(\s*)(?:[%!?]|[\w.,\s]+=\s*[%!]|\S.*\?\s*$)")
_WITH_VALUE = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links")
_FILE = ("-r", "--requirement")


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook's code: (where a cell begins, its tree), and the requirements that its cells install."""

    cells: tuple[tuple[str, ast.Module], ...]
    installs: PackageList


def read_notebook(path: Path) -> Notebook:
    """Read a notebook. Raises WrongInput if it is none, or a cell cannot be parsed, with cell and line."""
    cells: list[tuple[str, ast.Module]] = []
    lines = Lines()
    for number, source in enumerate(_sources(path), 1):
        where = f"{path}: cell {number}"
        for line in source.splitlines():
            _note_install(line, path, lines)
        code = _python_of(source)
        if code is not None:
            cells.append((where, _parse(where, code)))
    return Notebook(tuple(cells), lines.package_list())


def _sources(path: Path) -> Iterator[str]:
    """The text of each code cell: nbformat 4 has them at the top, nbformat 3 in worksheets."""
    try:
        document: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise WrongInput(f"{path} is not a notebook: {error}") from error
    sheets = document.get("worksheets", [document]) if isinstance(document, dict) else []
    sheets = [sheet for sheet in sheets if isinstance(sheet, dict) and isinstance(sheet.get("cells"), list)]
    if not sheets:
        raise WrongInput(f"{path} is not a notebook: it has no list of cells")
    language: Any = document
    for step in ("metadata", "kernelspec", "language"):
        language = language.get(step) if isinstance(language, dict) else None
    if language not in (None, "python"):
        raise WrongInput(f"{path} is a notebook in {language}, not in Python")
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", cell.get("input", ""))
            yield "".join(map(str, source)) if isinstance(source, list) else str(source)


def _python_of(source: str) -> str | None:
    """A cell without its cell magic; None if that is of another language."""
    magic = re.match(r"\s*%%(\w*)[^\n]*", source)
    if magic is None:
        return source
    # A blank line keeps the numbers of the others.
    return source[magic.end() :] if magic[1] in _PYTHON_CELLS else None


def _parse(where: str, code: str) -> ast.Module:
    try:
        return _tree(code)
    except (SyntaxError, ValueError):
        pass
    plain = "\n".join(_FOR_IPYTHON.sub(r"\1pass  # \g<0>", line) for line in code.split("\n"))
    try:
        return _tree(plain)
    except SyntaxError as error:
        raise WrongInput(
            f"{where}, line {error.lineno}: {error.msg}",
            fix="Fix or clear the cell. A cell in another language must start with its magic, such as %%bash.",
            code="unparsable-script",
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise WrongInput(f"{where}: {error}", code="unparsable-script") from error


def _tree(code: str) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # cells may `await`
    tree = compile(code, "<cell>", "exec", flags=flags, dont_inherit=True)
    if not isinstance(tree, ast.Module):
        raise TypeError(tree)
    return tree


def _note_install(line: str, path: Path, lines: Lines) -> None:
    if other := _OTHER_INSTALLER.match(line):
        fix = "use `apt` in the recipe" if other[1].startswith("apt") else "only pip packages are added"
        lines.left_out.append((line.strip(), fix))
    if found := _INSTALL.match(line):
        try:
            words = shlex.split(found[1], comments=True)
        except ValueError:
            lines.left_out.append((line.strip(), "not a command line"))
            return
        lines.read(_pip_lines(words), path.parent)


def _pip_lines(words: list[str]) -> Iterator[str]:
    """What follows `pip install` as lines of a requirements file; switches such as -q and -U are ignored."""
    waiting = iter(words)
    for word in waiting:
        if word in ("&&", ";", "|", "||", ">", ">>", "2>&1"):
            return
        if word in (*_WITH_VALUE, *_FILE):
            yield f"{word} {next(waiting, '')}"
        elif not word.startswith("-") or word.startswith(tuple(f"{option}=" for option in (*_WITH_VALUE, *_FILE))):
            yield word
