"""Names in the code: a variable says what it holds."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import toolkit

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(toolkit.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Directories of users' projects and settings, whose modes are those of the umask; and the tree of an image.
OPEN_DIRECTORIES = {
    *("builds/layers/metadata.py", "builds/restore.py", "cli/cluster.py", "cli/new.py", "pins/authoring/copying.py"),
    *("pins/bases/own_file.py", "pins/lock/lockfile.py"),
    *("recipes/catalogue.py", "recipes/copies.py"),
}


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The variables and parameters that a file binds, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def loop_variables(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The variables of loops and comprehensions, each with its line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.comprehension)):
            yield from bound_names(node.target)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_variables_say_what_they_hold(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {(line, name) for line, name in bound_names(tree) if name in ("one", "other_one", "it")}
    found |= {(line, name) for line, name in loop_variables(tree) if len(name) == 1 and name != "_"}
    assert not sorted(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_directories_of_the_work_area_are_made_closed_to_others(path: Path) -> None:
    """`make_directory` closes them, and those above; `mkdir` leaves that to the umask."""
    text, name = path.read_text(encoding="utf-8"), str(path.relative_to(PACKAGE))
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    made = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "mkdir"]
    options = [{keyword.arg for keyword in call.keywords} for call in made]
    kept = [given for given in options if "exist_ok" in given and ("parents" in given or "mode" not in given)]
    assert not kept or name in OPEN_DIRECTORIES


def test_loop_variables_of_nested_targets() -> None:
    tree = ast.parse("for a, (b, *c) in x: pass\n[d for d in y]\ndef f(one): pass\n")
    assert [name for _, name in sorted(loop_variables(tree))] == ["a", "b", "c", "d"]
    assert (3, "one") in bound_names(tree)
