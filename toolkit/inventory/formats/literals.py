"""What a Python file assigns, read with `ast`: the file is never executed."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.inventory.formats.rootfs import Rootfs

_LIMIT = 1 << 18


def read_assignments(rootfs: Rootfs, path: str) -> dict[str, Any] | None:
    """Name to value of every literal that the file assigns at its top level; None if there is no such file."""
    text = rootfs.read_text(path, _LIMIT)
    return None if text is None else assignments(text)


def assignments(text: str) -> dict[str, Any]:
    """Name to value of every literal assigned at the top level: plain, annotated, or wrapped as OrderedDict([...])."""
    found = {}
    for node in parse(text).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                found.update(_literal(target.id, value))
    return found


def calls(text: str, function: str) -> Iterator[tuple[Any, ...]]:
    """The literal arguments of every call of `function`, wherever it stands."""
    for node in ast.walk(parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            try:
                yield tuple(ast.literal_eval(argument) for argument in node.args)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue


def parse(text: str) -> ast.Module:
    """The syntax tree, empty if the text is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # deep nesting exhausts the parser
        return ast.Module(body=[], type_ignores=[])


def _literal(name: str, value: ast.expr) -> dict[str, Any]:
    if isinstance(value, ast.Call) and len(value.args) == 1 and not value.keywords:
        value = value.args[0]
    try:
        return {name: ast.literal_eval(value)}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return {}
