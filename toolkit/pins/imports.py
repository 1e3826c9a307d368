"""Which modules a person's code imports: for sure, only perhaps, and only for type checkers."""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Left the standard library with Python 3.12 and 3.13 (PEP 594, 632): a container's Python may still have them.
_ONCE_STANDARD = frozenset(
    (
        "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp",
        "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau",
        "telnetlib", "uu", "xdrlib",
    )
)  # fmt: skip
_NOT_CODE = ("__pycache__", "node_modules", "site-packages", "build", "dist", ".git")
_MOST_FILES = 20_000
_CATCHES_IMPORTS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


@dataclass(frozen=True, slots=True)
class Imports:
    """Dotted names that code imports from outside of itself and of the standard library, each with its first place.

    `optional` stand in a `try` that catches their absence or under an `if`; `typing` only under `TYPE_CHECKING`.
    `unread` are files that are no Python 3, with the reason.
    """

    required: dict[str, str]
    optional: dict[str, str]
    typing: dict[str, str]
    unread: dict[str, str]


def scan_imports(path: Path) -> Imports:
    """The imports of a script, or of all scripts below a folder. Raises WrongInput where there is no Python code."""
    root = path if path.is_dir() else path.parent
    files = sorted(_python_files(path)) if path.is_dir() else [path]
    if not files:
        raise WrongInput(f"there is no Python file in {path}")
    found: dict[str, dict[str, str]] = {"required": {}, "optional": {}, "typing": {}}
    unread = {}
    for file in files:
        try:
            tree = ast.parse(file.read_bytes(), filename=str(file))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            unread[str(file)] = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
            continue
        except OSError as error:
            unread[str(file)] = error.strerror or str(error)
            continue
        own = _own_modules(file, root)
        for name, line, kind in _imports(tree):
            if not _is_standard(name) and name.partition(".")[0] not in own:
                found[kind].setdefault(name, f"{file}:{line}")
    required = found["required"]
    optional = {name: where for name, where in found["optional"].items() if name not in required}
    known = required.keys() | optional.keys()
    typing = {name: where for name, where in found["typing"].items() if name not in known}
    return Imports(required, optional, typing, unread)


def _python_files(folder: Path) -> Iterator[Path]:
    count = 0
    for parent, folders, files in os.walk(folder):
        here = Path(parent)
        folders[:] = [
            name
            for name in folders
            if name not in _NOT_CODE and not name.startswith(".") and not (here / name / "pyvenv.cfg").exists()
        ]
        for name in files:
            if name.endswith(".py"):
                count += 1
                if count > _MOST_FILES:
                    raise WrongInput(f"{folder} holds more than {_MOST_FILES} Python files: name the training script")
                yield here / name


def _own_modules(file: Path, root: Path) -> set[str]:
    """What lies beside a script, at the top of its project or in `src`: that is imported from there."""
    found: set[str] = set()
    for folder in {file.parent, root, root / "src"}:
        try:
            entries = list(folder.iterdir())
        except OSError:
            continue
        found.update(entry.stem for entry in entries if entry.suffix == ".py" and entry != file)
        found.update(entry.name for entry in entries if entry.is_dir() and any(entry.glob("*.py")))
    return found


def _is_standard(name: str) -> bool:
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in _ONCE_STANDARD or top == "__main__"


def _imports(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """(dotted name, line, kind) of every absolute import."""

    def visit(nodes: Iterable[ast.AST], kind: str) -> Iterator[tuple[str, int, str]]:
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno, kind) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                if node.level == 0 and node.module:
                    # `from google import protobuf` and `from google.protobuf import message` mean the same thing.
                    yield from ((f"{node.module}.{alias.name}", node.lineno, kind) for alias in node.names)
            elif isinstance(node, ast.If):
                typing = _is_type_checking(node.test)
                yield from visit(node.body, "typing" if typing else _weaker(kind, node.test))
                yield from visit(node.orelse, kind if typing else _weaker(kind, node.test))
            elif isinstance(node, ast.Try):
                caught = "optional" if kind != "typing" and any(map(_catches_imports, node.handlers)) else kind
                yield from visit(node.body, caught)
                for handler in node.handlers:
                    yield from visit(handler.body, caught)
                yield from visit([*node.orelse, *node.finalbody], kind)
            else:
                yield from visit(ast.iter_child_nodes(node), kind)

    return visit(tree.body, "required")


def _weaker(kind: str, test: ast.expr) -> str:
    """Below `if __name__ == "__main__"` an import is as sure as above it; below another `if` it depends."""
    main = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
    return kind if main or kind == "typing" else "optional"


def _is_type_checking(test: ast.expr) -> bool:
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return name == "TYPE_CHECKING"


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(one, ast.Name) and one.id in _CATCHES_IMPORTS for one in types)
