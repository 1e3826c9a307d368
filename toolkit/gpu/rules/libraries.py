"""Whether the CUDA libraries that a GPU build loads exist, in its version, on the loader's path."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.cuda_libraries import is_cuda_library
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.gpu.facts import FrameworkCase, FrameworkFacts, GpuLibrary, Loaded

_CUDNN_CORES = ("libcudnn_graph.so.9", "libcudnn_ops_infer.so.8")
_CUDNN_PIN = re.compile(r"(nvidia-cudnn-cu\d+).*?[=>]=\s*(\d+)\.(\d+)")


def missing_libraries(case: FrameworkCase) -> Iterator[Finding]:
    """Required libraries that the loader does not find: absent, of another version, or out of its sight."""
    framework = case.framework
    lacking = [
        library
        for library in framework.libraries
        if library.want.required and library.path is None and is_cuda_library(library.want.soname)
    ]
    hidden = [library for library in lacking if library.unreachable]
    other = [library for library in lacking if not library.unreachable and library.others]
    absent = [library for library in lacking if not library.unreachable and not library.others]
    title = f"{framework.title} {framework.version}"
    if other:
        yield Finding(
            "wrong-cuda-library",
            Severity.ERROR,
            f"{title} needs {_each(other)}.",
            framework.advice("wrong-cuda-library") or _wrong_fix(framework, other),
        )
    if absent:
        names = ", ".join(map(_asked, absent))
        yield Finding(
            "missing-cuda-library",
            Severity.ERROR,
            f"{title} needs {count(len(absent), 'CUDA library', 'CUDA libraries')} that are not in the image: {names}.",
            framework.advice("missing-cuda-library") or "Start from a base with this CUDA and cuDNN (`ctk bases`).",
        )
    if hidden:
        where = ", ".join(dict.fromkeys(posixpath.dirname(library.unreachable[0]) for library in hidden))
        names = ", ".join(map(_asked, hidden))
        fix = framework.known.fix("cuda-library-off-path", framework.version)
        yield Finding(
            "cuda-library-off-path",
            Severity.WARNING if fix and fix.in_program else Severity.ERROR,
            f"{title} needs {names}: in the image, but in {where}, which the loader does not search.",
            framework.advice("cuda-library-off-path")
            or f'Set LD_LIBRARY_PATH = "{where.replace(", ", ":")}" ([environment] of a recipe, %environment).',
        )


def missing_other_library(case: FrameworkCase) -> Iterator[Finding]:
    """A library other than CUDA's: a part of the framework or of the system."""
    framework = case.framework
    lost = {posixpath.basename(path) for path in framework.lost}
    lacking = [
        library
        for library in framework.libraries
        if library.path is None and library.want.required and not is_cuda_library(library.want.soname)
        if library.want.soname not in lost
    ]
    if lacking:
        names = ", ".join(f"{library.want.soname} (for {posixpath.basename(library.want.by)})" for library in lacking)
        yield Finding(
            "missing-library",
            Severity.ERROR,
            f"{framework.title} {framework.version} is linked with {count(len(lacking), 'library', 'libraries')} that "
            f"the loader does not find: {names}.",
            "Add the system package that provides it (`apt`); if it belongs to the framework, rebuild from the base.",
        )


def damaged_libraries(case: FrameworkCase) -> Iterator[Finding]:
    """Libraries that exist and that the loader refuses: an interrupted copy, or a full disk while it was unpacked."""
    framework = case.framework
    if framework.damaged:
        each = "; ".join(f"{path} {reason}" for path, reason in framework.damaged)
        yield Finding(
            "damaged-library",
            Severity.ERROR,
            f"{framework.title} {framework.version} loads {count(len(framework.damaged), 'library', 'libraries')} that "
            f"the loader refuses: {each}.",
            "Install the package that the file belongs to again, or rebuild the image: its disk may have been full.",
        )


def private_libraries(case: FrameworkCase) -> Iterator[Finding]:
    """Files that only root can read: of a build with umask 077, or copied with their permissions."""
    framework = case.framework
    if framework.private:
        path, first = framework.private[0]
        closed = list(dict.fromkeys(place for _, place in framework.private))
        why = "read it" if first == path else f"enter {first}"
        more = f" The same is true of {', '.join(closed[1:])}." if closed[1:] else ""
        yield Finding(
            "library-not-readable",
            Severity.ERROR,
            f"{framework.title} {framework.version} loads {path}, and only its owner can {why}: a user who runs the "
            f"image gets `Permission denied`.{more}",
            f"Make it readable where the image is built: chmod -R a+rX {' '.join(closed)}.",
        )


def disagreeing_libraries(case: FrameworkCase) -> Iterator[Finding]:
    """Two of CUDA's libraries of which one uses functions that the other, older one does not have."""
    framework = case.framework
    for disagreement in framework.disagreeing:
        yield Finding(
            "cuda-libraries-disagree",
            Severity.ERROR,
            f"{framework.title} {framework.version} loads {disagreement.path}, which needs {disagreement.symbols[0]}, "
            f"with {disagreement.other}, an older release that does not have it.",
            "Install both from the same CUDA release; if LD_LIBRARY_PATH has the older one, remove that entry.",
        )


def older_cudnn(case: FrameworkCase) -> Iterator[Finding]:
    """A framework refuses a cuDNN of an older minor version than it was compiled with; a Requires-Dist names that one.

    Source: "Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0" (tensorflow issue 60913); "cuDNN
    version incompatibility" in torch/backends/cudnn/__init__.py of 2.5.1; `_check_cuda_versions` of jax_plugins 0.6.2.
    """
    framework = case.framework
    there = loaded_cudnn(framework, case.image.libraries)
    asking = framework.parts if framework.known.parts else (framework.distribution,)
    pins = (_CUDNN_PIN.match(line) for distribution in asking for line in distribution.requires)
    wanted = next((pin for pin in pins if pin), None)
    number = re.match(r"(\d+)\.(\d+)", there.version) if there else None
    if there is None or wanted is None or number is None:
        return
    wheel, major, minor = wanted.groups()
    if number[1] != major or int(number[2]) >= int(minor):
        return
    version = f"{major}.{minor}"
    yield Finding(
        "cudnn-too-old",
        Severity.ERROR,
        f"{framework.title} {framework.version} was compiled with cuDNN {version} and refuses an older one when it "
        f"runs: {there.path} is {there.version}.",
        f"Upgrade cuDNN to {version} or newer; as a wheel: {wheel}>={version}.",
    )


def loaded_cudnn(framework: FrameworkFacts, libraries: Iterable[GpuLibrary]) -> GpuLibrary | None:
    """The cuDNN that answers when the framework asks for its version, as far as the image tells.

    That is a part which libcudnn.so opens by name. libcudnn.so has a DT_RUNPATH, so that LD_LIBRARY_PATH comes first,
    even where the framework's DT_RPATH found libcudnn.so elsewhere. Tried: cudnnGetVersion of 9.1.0.70 and 9.10.2.21.
    """
    found = {library.want.soname: library.path for library in framework.libraries}
    names = [*_CUDNN_CORES, *(name for name in found if name.startswith("libcudnn.so."))]
    directories = [posixpath.dirname(path) for name in names if (path := found.get(name))]
    known = {posixpath.dirname(library.path): library for library in libraries if library.name == "cudnn"}
    return next((known[directory] for directory in directories if directory in known), None)


def _asked(lacking: Loaded) -> str:
    """The library, and which other one of CUDA's needs it."""
    by = posixpath.basename(lacking.want.by)
    return f"{lacking.want.soname} (for {by})" if is_cuda_library(by) else lacking.want.soname


def _each(loaded: list[Loaded]) -> str:
    """ "libcudnn.so.9, but the image holds libcudnn.so.8" for each."""
    parts = []
    for library in loaded:
        there = ", ".join(dict.fromkeys(posixpath.basename(path) for path in library.others))
        parts.append(f"{library.want.soname}, but the image holds {there}")
    return "; ".join(parts)


def _wrong_fix(framework: FrameworkFacts, loaded: list[Loaded]) -> str:
    if all(library.want.soname.startswith("libcudnn") for library in loaded):
        number = loaded[0].want.soname.rpartition(".")[2]
        major = (framework.build.cuda or "").partition(".")[0]
        wheel = f"nvidia-cudnn-cu{major}" if major else "nvidia-cudnn"
        return (
            f"Add cuDNN {number}: the apt package cudnn{number}-cuda-{major or 'X'}, or the wheel {wheel}=={number}.*."
        )
    return (
        f"The {framework.title} here is not the one that its base was made for: restore the base's version, "
        "or start from a base with this CUDA (`ctk bases`)."
    )
