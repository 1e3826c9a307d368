"""Which modules a user's code imports: always, optionally, or only for type checkers."""

from __future__ import annotations

import ast
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.authoring.plots import japanese_text
from toolkit.pins.authoring.usage import bound_names, used_parts
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Left the standard library with Python 3.12 and 3.13 (PEP 594, 632): a container's Python may still have them.
_ONCE_STANDARD = frozenset(
    (
        "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp",
        "lib2to3", "mailcap", "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau",
        "telnetlib", "uu", "xdrlib",
    )
)  # fmt: skip
_NOT_CODE = ("__pycache__", "node_modules", "site-packages", "build", "dist", ".git")
_MAX_FILES = 20_000
_CATCHES_IMPORTS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
_EXITS = {("sys", "exit"), ("os", "_exit"), ("", "exit"), ("", "quit")}


@dataclass(frozen=True, slots=True)
class Imports:
    """Dotted names that code imports, except its own and the standard library's, each with its first place.

    `optional` are in a `try` that catches their absence, or below an `if`. Imports for types only are left out.
    `unread` are files that are no Python 3, with the reason. `uses` are the parts of GPU frameworks that it names.
    `japanese` is where it first draws Japanese text.
    """

    required: dict[str, str]
    optional: dict[str, str]
    unread: dict[str, str]
    uses: dict[str, str] = field(default_factory=dict)
    japanese: str | None = None


def scan_imports(path: Path) -> Imports:
    """The imports of a script, or of all scripts below a directory.

    Raises WrongInput if there is no Python code, or none that can be parsed: with the line of a single script.
    """
    root = path if path.is_dir() else path.parent
    files = sorted(_python_files(path)) if path.is_dir() else [path]
    if not files:
        raise WrongInput(
            f"no Python file in {path}", fix="Use --from with a script, a notebook (.ipynb) or a list of packages."
        )
    trees: list[tuple[str, Path, ast.Module]] = []
    unread: dict[str, str] = {}
    for file in files:
        try:
            trees.append((str(file), file, ast.parse(file.read_bytes(), filename=str(file))))
        except SyntaxError as error:
            unread[f"{file}, line {error.lineno}" if error.lineno else str(file)] = error.msg
        except (ValueError, RecursionError, MemoryError) as error:
            unread[str(file)] = str(error) or type(error).__name__
        except OSError as error:
            unread[str(file)] = error.strerror or str(error)
    if not trees:
        where, reason = next(iter(unread.items()))
        raise WrongInput(
            f"cannot read {where}: {reason}",
            fix="Fix the syntax error first (`python3 -m py_compile FILE` shows the line). ctk reads Python 3 only.",
            code="unparsable-script",
        )
    return imports_of(trees, root, unread)


def imports_of(trees: Iterable[tuple[str, Path, ast.Module]], root: Path, unread: dict[str, str]) -> Imports:
    """The imports of parsed code, each with (name for its places, file, tree), in a project that begins at `root`."""
    found: dict[str, dict[str, str]] = {"required": {}, "optional": {}, "typing": {}}
    trees = list(trees)
    for label, file, tree in trees:
        for name, line, kind in _imports(tree):
            if not _is_standard(name) and not _is_own(name, file, root):
                found[kind].setdefault(name, f"{label}:{line}")
    required = found["required"]
    optional = {name: where for name, where in found["optional"].items() if name not in required}
    return Imports(required, optional, unread, _uses(trees), japanese_text(trees))


def _uses(trees: Sequence[tuple[str, Path, ast.Module]]) -> dict[str, str]:
    """The parts of frameworks that code uses; a cell of a notebook knows what an earlier one imported."""
    modules = [framework.module for framework in knowledge().frameworks]
    bound: dict[Path, dict[str, str]] = {}
    uses: dict[str, str] = {}
    for label, file, tree in trees:
        names = bound.setdefault(file, {})
        names |= bound_names(tree, modules)
        for name, line in used_parts(tree, names):
            uses.setdefault(name, f"{label}:{line}")
    return uses


def _python_files(directory: Path) -> Iterator[Path]:
    count = 0
    for parent, directories, files in os.walk(directory):
        here = Path(parent)
        directories[:] = [
            name
            for name in directories
            if name not in _NOT_CODE and not name.startswith(".") and not _is_environment(here / name)
        ]
        for name in files:
            if name.endswith(".py"):
                count += 1
                if count > _MAX_FILES:
                    raise WrongInput(
                        f"{directory} holds more than {_MAX_FILES} Python files: give the training script instead"
                    )
                yield here / name


def _is_environment(directory: Path) -> bool:
    """Whether a directory is a virtual environment or a sandbox; parts of a sandbox may not be readable."""
    return any(os.path.exists(directory / mark) for mark in ("pyvenv.cfg", ".singularity.d"))  # noqa: PTH110


def _is_own(name: str, file: Path, root: Path) -> bool:
    """Whether a dotted name is a local module: next to the script, at the top of its project, or in `src`."""
    return any(_lies_in(directory, name.split("."), file) for directory in {file.parent, root, root / "src"})


def _lies_in(directory: Path, parts: list[str], file: Path) -> bool:
    top = directory / parts[0]
    if any(top.glob("*.py")):
        return True
    # Directories need no `__init__.py` to be packages (PEP 420), so the module itself is looked for.
    places = [directory.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
    modules = [module for place in places for module in (place.with_suffix(".py"), place / "__init__.py")]
    return any(os.path.isfile(module) and module != file for module in modules)  # noqa: PTH113 - no error where closed


def _is_standard(name: str) -> bool:
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in _ONCE_STANDARD or top == "__main__"


def _imports(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    """(dotted name, line, kind) of every absolute import, in their order."""
    # A list instead of recursion: a long chain of `elif` nests deeper than Python's own stack.
    waiting: list[tuple[ast.AST, str]] = [(node, "required") for node in reversed(tree.body)]
    while waiting:
        node, kind = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno, kind) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0 and node.module:
                # `from google import protobuf` and `from google.protobuf import message` mean the same thing.
                yield from ((f"{node.module}.{alias.name}", node.lineno, kind) for alias in node.names)
        else:
            waiting += reversed([*_below(node, kind)])


def _below(node: ast.AST, kind: str) -> Iterator[tuple[ast.AST, str]]:
    """The children of a statement, each with the kind that an import has there."""
    if isinstance(node, ast.If):
        typing = _is_type_checking(node.test)
        yield from ((child, "typing" if typing else _weaker(kind, node.test)) for child in node.body)
        yield from ((child, kind if typing else _weaker(kind, node.test)) for child in node.orelse)
    elif isinstance(node, ast.Try):
        caught = "optional" if kind != "typing" and _goes_on_without(node) else kind
        handled = [child for handler in node.handlers for child in handler.body]
        yield from ((child, caught) for child in (*node.body, *handled))
        yield from ((child, kind) for child in (*node.orelse, *node.finalbody))
    else:
        # No expression holds an import.
        yield from ((child, kind) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _weaker(kind: str, test: ast.expr) -> str:
    """An import below `if __name__ == "__main__"` counts as unconditional; below another `if` it is optional."""
    main = isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"
    return kind if main or kind == "typing" else "optional"


def _is_type_checking(test: ast.expr) -> bool:
    name = test.id if isinstance(test, ast.Name) else test.attr if isinstance(test, ast.Attribute) else ""
    return name == "TYPE_CHECKING"


def _goes_on_without(node: ast.Try) -> bool:
    """Whether the code still runs if a module is missing: the error is caught, and the program goes on."""
    handler = next(filter(_catches_imports, node.handlers), None)
    return handler is not None and not any(map(_ends_the_program, handler.body))


def _ends_the_program(statement: ast.stmt) -> bool:
    """`raise …`, `sys.exit(…)`, `exit(…)`."""
    if isinstance(statement, ast.Raise):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    called = call.func if isinstance(call, ast.Call) else None
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return (called.value.id, called.attr) in _EXITS
    return isinstance(called, ast.Name) and ("", called.id) in _EXITS


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(caught, ast.Name) and caught.id in _CATCHES_IMPORTS for caught in types)
