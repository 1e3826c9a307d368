"""Which parts of its frameworks code uses, by their dotted names: `tensorflow.data.Dataset` of `tf.data.Dataset`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def bound_names(tree: ast.Module, modules: Iterable[str]) -> dict[str, str]:
    """What each name means that an import of `modules` (or of a part of one) binds anywhere in the code."""
    known = set(modules)
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                if top in known:
                    found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            ours = node.module.partition(".")[0] in known
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names if ours}
    return found


def used_parts(tree: ast.Module, bound: dict[str, str]) -> Iterator[tuple[str, int]]:
    """(dotted name, line) of each part that code names by one of the `bound` names, and of each that it imports."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in inner:
            root, attributes = _chain(node)
            if root in bound:
                yield ".".join((bound[root], *attributes)), node.lineno


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    """The name that an expression such as `tf.data.Dataset` begins with ("" if it is none), and its attributes."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), attributes[::-1]
