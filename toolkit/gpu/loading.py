"""What a framework's process loads: the libraries of its import, those that it opens by name, and what these need."""

from __future__ import annotations

import posixpath
import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.gpu.facts import Disagreement, Loaded
from toolkit.gpu.process import Library, Need, Process
from toolkit.inventory.formats.elf import Dynamic, read_symbol_names
from toolkit.inventory.knowledge.builds import Want
from toolkit.inventory.knowledge.cuda_libraries import is_cuda_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.gpu.loader import Loader
    from toolkit.inventory.contents.model import Interpreter
    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.inventory.knowledge.builds import FrameworkBuild

# nvJitLink's functions carry the release: a library of CUDA 12.4 uses those of 12.4, which that of 12.1 does not have.
# Source: the symbols of libcusparse.so.12 of 12.4 and of libnvJitLink.so.12; pytorch issues 111469 and 138460.
_BY_RELEASE = {"libnvJitLink.so": re.compile(rb"__nvJitLink\w+_\d+_\d+")}
# cuDNN 8 and 9 are shims that open their parts by name. Source: the file lists of nvidia-cudnn-cu12 8.9.7.29, 9.1.0.70
# and 9.28.0.42. The precompiled engines are left out: NVIDIA's packages cudnn-jit have none.
_PARTS = {
    "libcudnn.so.8": tuple(
        f"libcudnn_{part}.so.8"
        for part in ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train")
    ),
    "libcudnn.so.9": tuple(
        f"libcudnn_{part}.so.9" for part in ("graph", "ops", "cnn", "adv", "heuristic", "engines_runtime_compiled")
    ),
}


@dataclass(frozen=True, slots=True)
class Places:
    """Directories of CUDA libraries: those of NVIDIA's wheels, and others in which the loader may not look."""

    wheels: tuple[str, ...]
    others: tuple[str, ...]


def loaded_libraries(
    loader: Loader, build: FrameworkBuild, interpreter: Interpreter, places: Places
) -> tuple[tuple[Loaded, ...], tuple[Disagreement, ...]]:
    """The CUDA libraries that the framework loads, with every library that is missing; and those that disagree."""
    process = Process(loader, _program(loader, interpreter))
    found: dict[str, Loaded] = {}
    for need, required in _needs(loader, process, build, places.wheels):
        if need.path is not None and not is_cuda_library(posixpath.basename(need.name)):
            continue
        known = found.get(need.name)
        newly_missing = known is not None and need.path is None and known.path is not None
        if known is None or newly_missing or (required and not known.want.required):
            path = _plain(loader.rootfs, need.path) if need.path else None
            found[need.name] = Loaded(Want(need.name, need.by, required), path)
    libraries = tuple(
        _with_others(loader, library, places) if library.path is None else library for library in found.values()
    )
    return libraries, tuple(_disagreements(loader.rootfs, process.libraries))


def _plain(rootfs: Rootfs, path: str) -> str:
    """A path without `..` and symlinks in its directory; its name stays that which was asked for."""
    directory, name = posixpath.split(path)
    return posixpath.join(rootfs.resolve(directory) or directory, name)


def _needs(
    loader: Loader, process: Process, build: FrameworkBuild, wheels: tuple[str, ...]
) -> Iterator[tuple[Need, bool]]:
    """Everything that is asked for, in the order of an import, and whether the framework requires it."""
    _preload(loader, process, build, "before", wheels)
    opens = deque(build.opens)
    if opens:
        first = opens.popleft()
        needs = process.open(first)
        if any(need.path is None for need in needs):
            _preload(loader, process, build, "failure", wheels)
            needs = process.open(first)
        else:
            _preload(loader, process, build, "after", wheels)
        yield from ((need, True) for need in needs)
    for library in opens:
        yield from ((need, True) for need in process.open(library))
    for want in build.wants:
        opener = process.loaded(want.by) or Library(want.by, loader.dynamic(want.by) or Dynamic())
        yield from ((need, want.required) for need in process.open(want.soname, opener))
    for name, parts in _PARTS.items():
        shim = process.loaded(name)
        if shim is not None and shim.dynamic.soname:
            yield from ((need, True) for part in parts for need in process.open(part, shim))


def _preload(loader: Loader, process: Process, build: FrameworkBuild, when: str, wheels: tuple[str, ...]) -> None:
    for stem in (stem for preload in build.preloads if preload.when == when for stem in preload.stems):
        pattern = re.compile(re.escape(stem) + r"\.so\.[\d.]*\d")
        path = next(
            (f"{wheel}/{name}" for wheel in wheels for name in loader.rootfs.names(wheel) if pattern.fullmatch(name)),
            None,
        )
        if path is not None:
            process.open(path)


def _program(loader: Loader, interpreter: Interpreter) -> Library:
    """The Python program: conda's, and uv's, have a DT_RPATH that leads to the libraries beside them."""
    path = loader.rootfs.resolve(interpreter.path) or interpreter.path
    dynamic = loader.dynamic(path)
    if dynamic is None and interpreter.origin == "conda":
        dynamic = Dynamic(rpath=(f"{interpreter.prefix}/lib",))
    return Library(path, dynamic or Dynamic())


def _with_others(loader: Loader, lacking: Loaded, places: Places) -> Loaded:
    """Where else in the image the library is, and which other versions of it are there."""
    soname = lacking.want.soname
    hidden = (*places.others, *places.wheels, *loader.configured)
    there = [f"{directory}/{soname}" for directory in hidden if loader.rootfs.is_file(f"{directory}/{soname}")]
    others = loader.same_stem(soname, (*loader.directories, *hidden)) if is_cuda_library(soname) else ()
    return Loaded(lacking.want, None, tuple(dict.fromkeys(others)), tuple(dict.fromkeys(there)))


def _disagreements(rootfs: Rootfs, libraries: Iterable[Library]) -> Iterator[Disagreement]:
    for stem, pattern in _BY_RELEASE.items():
        provider = next((library for library in libraries if library.dynamic.soname.startswith(f"{stem}.")), None)
        if provider is None:
            continue
        has = read_symbol_names(rootfs, provider.path, pattern)
        for library in libraries:
            if provider.dynamic.soname in library.dynamic.needed:
                lacking = read_symbol_names(rootfs, library.path, pattern) - has
                if has and lacking:
                    yield Disagreement(
                        _plain(rootfs, library.path), _plain(rootfs, provider.path), tuple(sorted(lacking))
                    )
