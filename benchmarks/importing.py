"""Whether a distribution that was just installed can be imported, in a fresh process and without a GPU."""

from __future__ import annotations

import csv
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from benchmarks.installed_bases import clean_environment
from toolkit.inventory.knowledge.names import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.installed_bases import Environment

_TIMEOUT_SECONDS = 600.0  # ends what hangs; a busy machine takes minutes
_PAYLOAD = Path(__file__).with_name("import_modules.py")
_NOT_MODULES = {
    "test",
    "tests",
    "testing",
    "docs",
    "doc",
    "examples",
    "example",
    "scripts",
    "tools",
    "benchmarks",
    "bin",
}


@dataclass(frozen=True)
class Failure:
    """An import that failed: the exception that it was raised from, the lines of all behind it, whose code was running.

    `owners` are distributions, the one where it failed first.
    """

    error: str
    texts: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


def import_package(environment: Environment, package: str, statements: Sequence[str]) -> Failure | None:
    """Import the modules of a distribution, then run `statements`; None where all of that works."""
    modules = modules_of(environment, package)
    if not modules:
        return Failure("it has no module to import")
    return run_imports(environment, modules, statements)


def run_imports(environment: Environment, modules: Sequence[str], statements: Sequence[str] = ()) -> Failure | None:
    """Import modules and run statements in a fresh process."""
    argv = [str(environment.python), "-W", "ignore", str(_PAYLOAD)]
    settings = {
        **clean_environment(),
        "HOME": str(environment.directory),
        "PYTHONNOUSERSITE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    request = json.dumps({"modules": list(modules), "statements": list(statements)})
    try:
        done = subprocess.run(
            argv,
            input=request,
            capture_output=True,
            text=True,
            errors="replace",
            env=settings,
            cwd=environment.directory,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Failure(f"not imported within {_TIMEOUT_SECONDS:.0f} s")
    answer = _answer(done.stdout)
    if answer is None:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1][:300]
        return Failure(f"the process ended with status {done.returncode}: {last}")
    if not answer:
        return None
    owners = _owners(environment)
    found = (owners.get(_relative(environment, file)) for file in answer["files"])
    return Failure(answer["error"], tuple(answer["texts"]), tuple(dict.fromkeys(text for text in found if text)))


def modules_of(environment: Environment, package: str) -> list[str]:
    """The modules that a distribution is imported by: those that `names.toml` knows, else its own name, else all.

    They are read from its RECORD; what ctk installs always has one.
    """
    there = _top_modules(_record(environment, package))
    known = [module for module, name in names().imports.items() if name == canonicalize_name(package)]
    own = canonicalize_name(package).replace("-", "_")
    for some in (known, [own]):
        if found := [module for module in some if module.split(".")[0] in there]:
            return found
    return sorted(there)


def _top_modules(paths: Iterable[str]) -> set[str]:
    """What can be imported of these files: packages, modules and extension modules at the top of a site directory."""
    found = set()
    for path in paths:
        first, *rest = path.split("/")
        if rest and path.endswith((".py", ".so")) and (rest[0] == "__init__.py" or len(rest) == 1 or "." not in first):
            name = first
        elif not rest and first.endswith((".py", ".so")):
            name = first.split(".")[0]
        else:
            continue
        if name.isidentifier() and not name.startswith("_") and name not in _NOT_MODULES:
            found.add(name)
    return found


def _answer(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                found: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            return found
    return None


def _record(environment: Environment, package: str) -> list[str]:
    for directory in environment.site.glob("*.dist-info"):
        if _name_of(directory) == canonicalize_name(package):
            return _files(directory / "RECORD")
    return []


def _name_of(information: Path) -> str:
    return canonicalize_name(information.name.removesuffix(".dist-info").rsplit("-", 1)[0])


def _files(record: Path) -> list[str]:
    with record.open(newline="", encoding="utf-8", errors="replace") as file:
        return [row[0] for row in csv.reader(file) if row and not row[0].startswith(("../", "/"))]


def _owners(environment: Environment) -> dict[str, str]:
    """Which distribution each file of the site directory belongs to."""
    found = {}
    for directory in environment.site.glob("*.dist-info"):
        found.update(dict.fromkeys(_files(directory / "RECORD"), _name_of(directory)))
    return found


def _relative(environment: Environment, file: str) -> str:
    return file.removeprefix(f"{environment.site}/")
