"""What a source distribution needs to be compiled: compilers, and the modules that its `setup.py` imports."""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.inventory.contents.environment import read_environment
from toolkit.inventory.knowledge.names import names
from toolkit.support.tomlfile import parse_toml, read_toml

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.pins.bases.target import PythonTarget

_FILE = Path(__file__).with_name("compiled.toml")
_C, _CPP, _FORTRAN = (".c", ".pyx"), (".cc", ".cpp", ".cxx", ".cu"), (".f", ".f90")
# A `setup.py` that compiles nothing may still come with C files, as documentation or tests.
_COMPILES = re.compile(r"ext_modules|\w*Extension\(|cythonize|cffi_modules|rust_extensions|cmake", re.IGNORECASE)
_COMPILING_BACKENDS = ("mesonpy", "scikit_build_core", "skbuild", "maturin", "setuptools_rust", "py_build_cmake")
_CUDA = re.compile(r"CUDAExtension|CUDA_HOME|\bnvcc\b")
_RUST = re.compile(r"maturin|setuptools[-_]rust")
_NOT_INSTALLED_FOR = {"setuptools", "distutils", "pkg_resources", "__future__"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A compiler or another build tool; the comments in `compiled.toml` say what each field means."""

    name: str
    title: str
    programs: tuple[str, ...]
    places: tuple[str, ...]
    apt: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """What building one source distribution needs. `tools` are names of `compiled.toml`.

    `imports` are the modules of others that its `setup.py` imports in any case. `asks_for_gpu`: it compiles its CUDA
    code only where it sees a GPU, or where FORCE_CUDA is set.
    """

    tools: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    asks_for_gpu: bool = False


def needs_of(files: Collection[str], setup: str | None, pyproject: str | None) -> Needs:
    """What a source distribution needs, of whose `files` the paths below its top directory are given."""
    text = setup or ""
    backend, requires = _build_system(pyproject)
    imports = tuple(sorted(_own_imports(text, files)))
    if not (_COMPILES.search(text) or backend.startswith(_COMPILING_BACKENDS)):
        return Needs(imports=imports)
    has_cuda = (_has(files, (".cu",)) or not files) and _CUDA.search(text) is not None
    cpp = _has(files, _CPP) or re.search(r"CppExtension|CUDAExtension|c\+\+", text) is not None
    fortran = _has(files, _FORTRAN) and (backend == "mesonpy" or "numpy.distutils" in text)
    cmake = "CMakeLists.txt" in files and "cmake" not in requires.lower()
    rust = any(posixpath.basename(file) == "Cargo.toml" for file in files) and _RUST.search(
        f"{text} {requires} {backend}"
    )
    wanted = {
        "gcc": _has(files, _C) and not cpp,
        "g++": cpp,
        "gfortran": fortran,
        "nvcc": has_cuda,
        "cmake": cmake and "cmake" in f"{text} {backend}".lower(),
        "cargo": rust and any(posixpath.basename(file) == "Cargo.toml" for file in files),
    }
    tools = tuple(name for name, needed in wanted.items() if needed)
    return Needs(tools, imports, asks_for_gpu=has_cuda and "FORCE_CUDA" in text)


def imported_distributions(needs: Needs) -> list[str]:
    """The known distributions that provide what a `setup.py` imports."""
    return sorted({found for module in needs.imports if (found := names().distribution(module))})


def compile_note(what: str, needs: Needs, target: PythonTarget, apt: Sequence[str], recipe: str) -> str | None:
    """What the build of `what` needs and the base does not have, in a sentence; None if nothing is missing.

    `apt` are the packages that the recipe installs before.
    """
    lacking = [tool for tool in map(tools().__getitem__, needs.tools) if not _provided(tool, target, apt)]
    if not lacking:
        return None
    titles = " and ".join(f"for its CUDA code {tool.title}" if tool.name == "nvcc" else tool.title for tool in lacking)
    there = (
        f"the base does not have {'it' if len(lacking) == 1 else 'them'}"
        if target.programs is not None
        else "the base was not pulled yet, so its programs are unknown"
    )
    ways = []
    if packages := list(dict.fromkeys(package for tool in lacking for package in tool.apt if package not in apt)):
        ways.append(f"`ctk add --apt {recipe} {' '.join(packages)}` installs {'these' if len(packages) > 1 else 'it'}")
    if any(not tool.apt for tool in lacking):
        ways.append("images with `devel` in their tag have nvcc")
    gpu = ". No GPU is visible in a build: without FORCE_CUDA=1 no CUDA code is compiled" if needs.asks_for_gpu else ""
    return (
        f"{what} has no wheel for this base and is compiled in the build, which needs {titles}: {there}. "
        f"{'; '.join(ways)}{gpu}"
    )


def import_note(what: str, needs: Needs, target: PythonTarget) -> str | None:
    """Which framework a `setup.py` imports that the base does not have; None if there is none."""
    from toolkit.inventory.knowledge.frameworks import knowledge

    for module in needs.imports:
        framework = next(
            (framework for framework in knowledge().frameworks if framework.module == module.partition(".")[0]), None
        )
        if framework is not None and not any(map(framework.is_variant, target.installed)):
            return (
                f"{what} is compiled against {framework.title}, which its setup.py imports, and the base does not have "
                f"it: the build fails. Start from a base with {framework.title} (`ctk bases`)"
            )
    return None


def find_tools(rootfs: Rootfs) -> frozenset[str]:
    """The names of the tools that an image has."""
    path = read_environment(rootfs)[0]["PATH"].split(":")
    return frozenset(
        tool.name
        for tool in tools().values()
        if any(
            rootfs.is_file(posixpath.join(place, program))
            for place in (*path, *tool.places)
            for program in tool.programs
        )
    )


@cache
def tools() -> dict[str, Tool]:
    """Read `compiled.toml` once."""
    found = read_toml(_FILE).content["tool"]
    return {
        entry["name"]: Tool(
            entry["name"], entry["title"], tuple(entry["programs"]), tuple(entry.get("places", ())), tuple(entry["apt"])
        )
        for entry in found
    }


def _provided(tool: Tool, target: PythonTarget, apt: Sequence[str]) -> bool:
    if tool.name in (target.programs or ()):
        return True
    given = {line.partition("=")[0] for line in apt}
    return bool(given & {tool.name, *tool.apt[:1]}) or ("build-essential" in given and tool.name in ("gcc", "g++"))


def _has(files: Iterable[str], suffixes: tuple[str, ...]) -> bool:
    return any(file.endswith(suffixes) for file in files)


def _build_system(pyproject: str | None) -> tuple[str, str]:
    """The backend and the requirements, as text to search in."""
    try:
        system = parse_toml(pyproject or "").get("build-system", {})
    except ValueError:
        return "", ""
    if not isinstance(system, dict):
        return "", ""
    return str(system.get("build-backend", "")), str(system.get("requires", ""))


def _own_imports(setup: str, files: Collection[str]) -> set[str]:
    """The modules that a `setup.py` imports unconditionally, except its own and the standard library's."""
    try:
        body = ast.parse(setup).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    own = {file.partition("/")[0].removesuffix(".py") for file in files}
    return {
        module
        for module in found
        if (top := module.partition(".")[0]) not in sys.stdlib_module_names and top not in own | _NOT_INSTALLED_FOR
    }
