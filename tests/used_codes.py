"""The codes that the source of ctk can print, with their severities, read from its syntax trees and data files."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import toolkit
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(toolkit.__file__).parent
_GATE = PACKAGE.parent / "sbatch/blocks/gate-functions.j2"
# These pass on entries of the catalogue itself.
_OF_THE_CATALOGUE = ("support/explanations.py",)


@dataclass
class _Module:
    """A parsed module: its functions by the nodes in them, and the values of its names in capitals."""

    path: str
    tree: ast.Module
    constants: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    function_of: dict[ast.AST, ast.FunctionDef] = field(default_factory=dict)

    def calls(self, name: str) -> Iterator[ast.Call]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield node


def used_codes(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Every code of a finding or an error, with the severities that the source gives it.

    Raises AssertionError for a code that cannot be told from the source: write it as a literal or a constant.
    """
    modules = [_read(path, package) for path in sorted(package.rglob("*.py"))]
    shared: dict[str, list[ast.expr]] = defaultdict(list)
    for module in modules:
        for name, values in module.constants.items():
            shared[name].extend(values)
    found: dict[str, set[str]] = defaultdict(set)
    for code, severity in _codes_in_data(package):
        found[code].add(severity)
    for module in modules:
        if module.path not in _OF_THE_CATALOGUE:
            for code, severities in _in_module(module, shared):
                found[code] |= severities
    return dict(found)


def _read(path: Path, package: Path) -> _Module:
    module = _Module(str(path.relative_to(package)), ast.parse(path.read_text(encoding="utf-8")))
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign):
            _note_constants(module, statement)
    for function in ast.walk(module.tree):
        if isinstance(function, ast.FunctionDef):
            module.function_of.update(dict.fromkeys(ast.walk(function), function))
    return module


def _note_constants(module: _Module, statement: ast.Assign) -> None:
    for target in statement.targets:
        if isinstance(target, ast.Name):
            module.constants[target.id].append(statement.value)
        elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            for name, value in zip(target.elts, statement.value.elts, strict=True):
                if isinstance(name, ast.Name):
                    module.constants[name.id].append(value)


def _codes_in_data(package: Path) -> Iterator[tuple[str, str]]:
    for path in package.rglob("*.toml"):
        if path.parent.name != "codes":
            content = parse_toml(path.read_text(encoding="utf-8"))
            rows = (row for value in content.values() if isinstance(value, list) for row in value)
            for row in rows:
                if isinstance(row, dict) and "code" in row:
                    yield row["code"], "warning" if row.get("kind") == "idle" else "error"
    if package == PACKAGE:  # what the gate of a job prints, which `ctk check-gpu --log` reads
        for code in re.findall(r"\[([a-z]+(?:-[a-z]+)+)\]", _GATE.read_text(encoding="utf-8")):
            yield code, "error"


def _in_module(module: _Module, shared: dict[str, list[ast.expr]]) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            for value in _class_codes(node):
                yield value, {"error"}
        if not isinstance(node, ast.Call):
            continue
        is_finding = isinstance(node.func, ast.Name) and node.func.id == "Finding"
        code = _argument(node, "code", 0 if is_finding else None)
        if code is None:
            continue
        severity = _argument(node, "severity", 1) if is_finding else None
        severities = _severities(module, shared, severity) if severity is not None else {"error"}
        for leaf in _leaves(module, shared, code):
            place = f"{module.path}:{leaf.lineno}: {ast.unparse(leaf)}"
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                yield leaf.value, severities
            else:
                assert _is_carried(leaf), f"{place}: write the code of a finding as a literal or a constant"


def _class_codes(node: ast.ClassDef) -> Iterator[str]:
    """`code = "…"` in the body of an error's class."""
    for statement in node.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "code" for target in targets):
            assert isinstance(statement, ast.Assign)
            assert isinstance(statement.value, ast.Constant), ast.unparse(statement)
            yield statement.value.value


def _is_carried(leaf: ast.expr) -> bool:
    """Whether a code comes from another finding, error or data file, whose own code is looked at where it is made."""
    if isinstance(leaf, ast.Attribute):
        return leaf.attr == "code"
    return isinstance(leaf, ast.Subscript) and isinstance(leaf.slice, ast.Constant) and leaf.slice.value == "code"


def _severities(module: _Module, shared: dict[str, list[ast.expr]], severity: ast.expr) -> set[str]:
    leaves = _leaves(module, shared, severity)
    return {leaf.attr.lower() for leaf in leaves if isinstance(leaf, ast.Attribute) and leaf.attr.isupper()}


def _leaves(module: _Module, shared: dict[str, list[ast.expr]], value: ast.expr) -> Iterator[ast.expr]:
    """The expressions that `value` can stand for: through conditions, constants, variables and parameters."""
    if isinstance(value, ast.IfExp):
        yield from _leaves(module, shared, value.body)
        yield from _leaves(module, shared, value.orelse)
    elif isinstance(value, ast.Name):
        for meaning in _meanings(module, shared, value):
            yield from _leaves(module, shared, meaning)
    else:
        yield value


def _meanings(module: _Module, shared: dict[str, list[ast.expr]], name: ast.Name) -> list[ast.expr]:
    if re.fullmatch(r"_?[A-Z][A-Z_]*", name.id):
        return module.constants.get(name.id) or shared[name.id]
    function = module.function_of[name]
    parameters = [parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)]
    if name.id in parameters:
        # Whoever calls a class gives `code=`, which is collected there.
        if function.name == "__init__":
            return []
        given = (_argument(call, name.id, parameters.index(name.id)) for call in module.calls(function.name))
        return [value for value in given if value is not None]
    return [
        node.value
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        if any(isinstance(target, ast.Name) and target.id == name.id for target in node.targets)
    ] or [ast.copy_location(ast.Name(id="?", ctx=ast.Load()), name)]


def _argument(call: ast.Call, name: str, position: int | None) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[position] if position is not None and len(call.args) > position else None
