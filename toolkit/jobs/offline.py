"""Jobs on nodes without the internet: what their program would download, to be run first where there is one."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.files import read_small
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import visible_command
from toolkit.support.text import path_argument
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.jobs.model import Job

_FILE = Path(__file__).with_name("downloads.toml")
_MAX_FILES = 50  # of one program that are read
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+-]*")
_UNKNOWN = "NAME"


@dataclass(frozen=True, slots=True)
class Loader:
    """A function that downloads what it loads. The fields are those of `downloads.toml`."""

    call: str
    argument: int
    what: str
    command: str
    requires: str | None = None


@dataclass(frozen=True, slots=True)
class Download:
    """What a program loads: the function, the text that names it (None if only the program knows), and the command."""

    call: str
    what: str
    name: str | None
    command: str


@cache
def loaders() -> tuple[Loader, ...]:
    """The functions of `downloads.toml`."""
    rows = read_toml(_FILE).content["download"]
    return tuple(Loader(row["call"], row["argument"], row["what"], row["command"], row.get("requires")) for row in rows)


@cache
def offline_variables() -> tuple[tuple[str, str], ...]:
    """The variables of a job on nodes without the internet, which make packages use their caches only."""
    return tuple(read_toml(_FILE).content["variables"].items())


def downloads(text: str) -> tuple[Download, ...]:
    """What a program of this source text loads, each once. Empty if the text is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = _imported(tree)
    found = (_download(node, names) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple(dict.fromkeys(download for download in found if download is not None))


def local_modules(text: str) -> tuple[str, ...]:
    """The modules that a program of this text imports, as paths beside it: `data/loader.py` for `data.loader`."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.ImportFrom):
            found += [alias.name for alias in node.names]
    paths = [name.replace(".", "/") for name in found]
    return tuple(dict.fromkeys(path for name in paths for path in (f"{name}.py", f"{name}/__init__.py")))


def advise_downloads(job: Job, directory: Path, cluster: str) -> tuple[Finding, ...]:
    """A warning that names what the job's program would download on a node without the internet, and how to do it."""
    found = tuple(dict.fromkeys(download for text in _sources(job, directory) for download in downloads(text)))
    if not found:
        return ()
    named = [f"{download.what} {download.name}" if download.name else f"a {download.what} ({download.call})"
             for download in found]  # fmt: skip
    lines = [
        visible_command(["ctk", "run", path_argument(job.image), "--", "python", "-c", download.command])
        for download in found
    ]
    return (
        Finding(
            "downloads-first",
            Severity.WARNING,
            f"compute nodes of {cluster} do not reach the internet, and the program loads {', '.join(named)}",
            "\n".join(["Download it before the job, on this host:", *lines]),
        ),
    )


def _sources(job: Job, directory: Path) -> Iterator[str]:
    """The text of the program that a job runs with Python, and of the modules beside it."""
    script = next((word for word in job.command[1:] if word.endswith(".py")), None)
    if script is None or not re.fullmatch(r"python[0-9.]*", job.command[0].rpartition("/")[2]):
        return
    waiting, seen = [directory / script], set[Path]()
    while waiting and len(seen) < _MAX_FILES:
        path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        try:
            text = read_small(path).decode("utf-8", errors="replace")
        except OSError:
            continue
        yield text
        beside = (path.parent, directory / Path(script).parent)
        waiting += [place / name for name in local_modules(text) for place in dict.fromkeys(beside)]


def _imported(tree: ast.AST) -> dict[str, str]:
    """The full name of each name that an import binds: `keras` is `tensorflow.keras`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]  # `import a.b` binds a, `import a.b as c` binds c to a.b
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _download(node: ast.Call, names: dict[str, str]) -> Download | None:
    call = _full_name(node.func, names)
    loader = next((loader for loader in loaders() if call and fnmatchcase(call, loader.call)), None)
    if call is None or loader is None:
        return None
    if loader.requires is not None and not _is_set(node, loader.requires):
        return None
    name = None
    if loader.argument >= 0:
        value = node.args[loader.argument] if len(node.args) > loader.argument else None
        name = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
        if name is not None and name.startswith((".", "/", "~")):
            return None  # a path
        name = name if name is not None and _NAME.fullmatch(name) else None
    arguments = ", ".join(f'"{text}"' for text in _leading_texts(node)) or f'"{_UNKNOWN}"'
    words = {"name": name or _UNKNOWN, "arguments": arguments, "call": call, "package": call.partition(".")[0]}
    return Download(call, loader.what, name, loader.command.format_map(words))


def _leading_texts(node: ast.Call) -> Iterator[str]:
    """The texts that the arguments of a call begin with, as far as they are plain names."""
    for value in node.args:
        if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and _NAME.fullmatch(value.value)):
            return
        yield value.value


def _is_set(node: ast.Call, keyword: str) -> bool:
    """Whether a call has this keyword with another value than None or False."""
    value = next((found.value for found in node.keywords if found.arg == keyword), None)
    return value is not None and not (isinstance(value, ast.Constant) and value.value in (None, False))


def _full_name(function: ast.expr, names: dict[str, str]) -> str | None:
    """`tensorflow.keras.datasets.mnist.load_data` of `keras.datasets.mnist.load_data`; None for anything else."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or function.id not in names:
        return None
    return ".".join([names[function.id], *parts])
