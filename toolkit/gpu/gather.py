"""From an opened image to the facts that the rules judge."""

from __future__ import annotations

import os
import posixpath
import re
import stat
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.gpu.facts import FrameworkFacts, GpuLibrary, ImageFacts
from toolkit.gpu.loader import Loader, read_loader
from toolkit.gpu.loading import Places, loaded_libraries
from toolkit.gpu.network import read_network
from toolkit.gpu.others import read_others
from toolkit.inventory.contents.imports import module_directory
from toolkit.inventory.contents.interpreters import is_open_to_all
from toolkit.inventory.contents.model import Distribution
from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.contents.record import hash_of, read_record, read_tags, shared_libraries
from toolkit.inventory.contents.started import runscript, started_python
from toolkit.inventory.formats.elf import read_damage
from toolkit.inventory.formats.tree import Unreadable
from toolkit.inventory.knowledge.builds import Installed
from toolkit.inventory.knowledge.frameworks import knowledge, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.gpu.facts import Loaded
    from toolkit.inventory.contents.model import Interpreter, Inventory
    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.inventory.knowledge.builds import FrameworkBuild
    from toolkit.inventory.knowledge.frameworks import Framework

_LIBRARY = re.compile(
    r"^lib(cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvinfer|nvrtc|cupti|cutensor)\.so\.(\d[\d.]*)$"
)
_MAX_HASHED = 32
_MAX_IN_HOME = 100
# Each library's wheel, whose version says more than the file's name; "*" is the CUDA major, or nothing from 13 on.
_WHEELS = {
    "cudart": "nvidia-cuda-runtime", "cublas": "nvidia-cublas", "cudnn": "nvidia-cudnn", "cufft": "nvidia-cufft",
    "curand": "nvidia-curand", "cusolver": "nvidia-cusolver", "cusparse": "nvidia-cusparse", "nccl": "nvidia-nccl",
    "nvrtc": "nvidia-cuda-nvrtc", "cupti": "nvidia-cuda-cupti", "nvinfer": "tensorrt", "cutensor": "cutensor",
}  # fmt: skip


def gather_image_facts(rootfs: Rootfs, command: Sequence[str] = ()) -> ImageFacts:
    """Read an image. Raises WrongInput (code `corrupt-image`) if it is damaged.

    `command` is what a job runs in it; without one, its runscript is what it runs.
    """
    inventory = read_inventory(rootfs)
    interpreters = inventory.interpreters
    path = "" if inventory.doubt("PATH") else inventory.variable("PATH")
    program = started_python(rootfs, command or runscript(rootfs), path, interpreters)
    if program is None and not any(interpreter.default for interpreter in interpreters):
        # `python` may be a script that starts the one of an environment.
        program = started_python(rootfs, ["python"], path, interpreters)
    loader = read_loader(rootfs, inventory)
    toolkits = _toolkit_directories(rootfs, inventory)
    frameworks: dict[tuple[str, str], FrameworkFacts] = {}
    for interpreter in sorted(interpreters, key=lambda interpreter: interpreter != program):
        by_default = interpreter.default if program is None else interpreter == program
        for facts in _frameworks(rootfs, inventory, interpreter, loader, toolkits):
            # System Pythons share directories: what two of them see is reported once.
            frameworks.setdefault((facts.name, facts.distribution.metadata), replace(facts, by_default=by_default))
    drivers = tuple(_drivers(rootfs, inventory, loader))
    return ImageFacts(
        inventory=inventory,
        frameworks=tuple(frameworks.values()),
        libraries=tuple(_libraries(rootfs, inventory, loader, toolkits)),
        drivers=drivers,
        driver_versions={path: version for path, _ in drivers if (version := _driver_version(rootfs, path))},
        sif_architecture=rootfs.sif.architecture if rootfs.sif else None,
        disputed=tuple(sorted(rootfs.disputed)),
        closed_path=tuple(_closed_path(rootfs, inventory)),
        network=read_network(loader),
        program=program.path if program else None,
        others=read_others(rootfs, inventory),
        for_root=tuple(_for_root(rootfs)),
    )


def _frameworks(
    rootfs: Rootfs, inventory: Inventory, interpreter: Interpreter, loader: Loader, toolkits: tuple[str, ...]
) -> Iterator[FrameworkFacts]:
    visible = inventory.visible(interpreter)
    for framework in knowledge().frameworks:
        variants = [copy for copy in inventory.copies(interpreter) if framework.is_variant(copy.name)]
        home = module_directory(rootfs, interpreter, framework.module, variants)
        if not variants:
            variants = _unrecorded(rootfs, loader, framework, home, visible)
        if not variants:
            continue
        variants = _with_files(rootfs, variants) or variants
        winner, by_hash = _winner(rootfs, framework, variants)
        installed = Installed(rootfs, loader.dynamic, home or winner.directory, winner, visible)
        build = framework.read_build(installed)
        start = f"{home or winner.directory}/{framework.module}/__init__.py"
        places = Places(_wheel_directories(rootfs, interpreter), toolkits)
        libraries, disagreeing = loaded_libraries(loader, build, interpreter, places)
        yield FrameworkFacts(
            known=framework,
            interpreter=interpreter.path,
            distribution=winner,
            variants=tuple(variants),
            build=build,
            libraries=libraries,
            companions={name: companion for name, companion in visible.items() if not framework.is_variant(name)},
            told_by_hash=by_hash,
            lost=tuple(_lost(rootfs, framework, winner, visible)) if build.gpu else (),
            disagreeing=disagreeing,
            tags=tuple((part, read_tags(rootfs, part)) for part in (winner, *_parts(framework, visible))),
            closed=_closed(rootfs, interpreter),
            damaged=tuple(_damaged(rootfs, build, libraries)),
            private=tuple(_private(rootfs, (*_loaded_files(build, libraries), start))) if build.gpu else (),
            compiled=_compiled(rootfs, framework, visible) if build.gpu else frozenset(),
        )


def _unrecorded(
    rootfs: Rootfs, loader: Loader, framework: Framework, home: str | None, visible: dict[str, Distribution]
) -> list[Distribution]:
    """A framework that an import finds and no metadata names: its source tree, built in place, on the path."""
    if home is None:
        return []
    found = Distribution(framework.name, "", home, f"{home}/{framework.module}")
    build = framework.read_build(Installed(rootfs, loader.dynamic, home, found, visible))
    return [replace(found, version=build.version)] if build.version and build.complete else []


def _lost(
    rootfs: Rootfs, framework: Framework, winner: Distribution, visible: dict[str, Distribution]
) -> Iterator[str]:
    """Shared libraries of the framework and of cuDNN that a RECORD lists and that do not exist."""
    parts = [
        *_parts(framework, visible),
        *(part for name, part in visible.items() if name.startswith("nvidia-cudnn-cu")),
    ]
    for part in (winner, *parts):
        yield from (path for path in shared_libraries(rootfs, part) if not rootfs.is_file(path))


def _parts(framework: Framework, visible: dict[str, Distribution]) -> list[Distribution]:
    """The other distributions that the framework comes in."""
    return [part for name, part in visible.items() if matches(name, framework.parts)]


def _compiled(rootfs: Rootfs, framework: Framework, visible: dict[str, Distribution]) -> frozenset[str]:
    """The distributions that require the framework, and whose wheels are for one platform."""
    asking = [
        distribution for distribution in visible.values() if any(map(framework.is_required_in, distribution.requires))
    ]
    return frozenset(
        distribution.name
        for distribution in asking
        if any(not tag.endswith("-any") for tag in read_tags(rootfs, distribution))
    )


def _closed(rootfs: Rootfs, interpreter: Interpreter) -> str | None:
    """The home of root or of the builder, if the interpreter is in it and others cannot enter it."""
    in_home = (rootfs.resolve(interpreter.path) or "").startswith(("/root/", "/home/"))
    return rootfs.closed_directory(interpreter.path) if in_home else None


def _loaded_files(build: FrameworkBuild, libraries: Iterable[Loaded]) -> tuple[str, ...]:
    paths = (library.path for library in libraries if library.path is not None and library.want.required)
    return tuple(dict.fromkeys((*build.opens, *paths)))


def _damaged(rootfs: Rootfs, build: FrameworkBuild, libraries: Iterable[Loaded]) -> Iterator[tuple[str, str]]:
    """The libraries that the framework loads and that are empty or truncated."""
    for path in _loaded_files(build, libraries):
        reason = read_damage(rootfs, path)
        if reason is not None:
            yield path, reason


def _private(rootfs: Rootfs, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Those of the files that users cannot read, with what is closed to them: a directory, or the file itself.

    A sandbox that this user can read is one that this user can run.
    """
    if rootfs.sif is None and os.geteuid():
        return
    for path in paths:
        closed = rootfs.closed_directory(path)
        mode = rootfs.mode(path)
        if closed is not None:
            yield path, closed
        elif mode is not None and not mode & stat.S_IROTH:
            yield path, path


def _for_root(rootfs: Rootfs) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Root's user site, and the environments in its home where users cannot enter it, with frameworks in them."""
    closed = rootfs.closed_directory("/root/.local")
    try:
        names = [name for name in rootfs.subdirectories("/root")[:_MAX_IN_HOME] if closed or name == ".local"]
        sites = [
            f"/root/{name}/lib/{python}/site-packages"
            for name in names
            for python in rootfs.names(f"/root/{name}/lib")
            if python.startswith("python")
        ]
        for site in sites:
            found = (name.partition("-") for name in rootfs.names(site) if name.endswith(".dist-info"))
            named = {canonicalize_name(name): rest.removesuffix(".dist-info") for name, _, rest in found}
            known = sorted(f"{name} {version}" for name, version in named.items() if knowledge().framework_of(name))
            if known:
                yield site, tuple(known)
    except Unreadable:  # another user's sandbox
        return


def _closed_path(rootfs: Rootfs, inventory: Inventory) -> Iterator[str]:
    """The directories of PATH in which Pythons were not looked for."""
    for directory in inventory.variable("PATH").split(":"):
        if directory.startswith("/") and not is_open_to_all(rootfs, directory):
            yield directory


def _with_files(rootfs: Rootfs, variants: list[Distribution]) -> list[Distribution]:
    """Those of several that install anything: tensorflow 2.15.1 for aarch64 only asks for tensorflow-cpu-aws."""
    if len(variants) < 2:
        return variants
    return [
        variant
        for variant in variants
        if not variant.has_record or any(map(partial(_is_code, variant), read_record(rootfs, variant)))
    ]


def _is_code(distribution: Distribution, path: str) -> bool:
    return path.startswith(f"{distribution.directory}/") and not path.startswith(f"{distribution.metadata}/")


def _winner(rootfs: Rootfs, framework: Framework, variants: list[Distribution]) -> tuple[Distribution, bool]:
    """The distribution that an import gets, and whether hashes say so.

    It is one of the first directory on the path. If several are there, each overwrote files of the others: the one
    whose `__init__.py` is there wins, and where that is the same in all, the one whose other files are.
    """
    first = [variant for variant in variants if variant.directory == variants[0].directory]
    if len(first) == 1:
        return first[0], False
    records = [read_record(rootfs, variant) for variant in first]
    start = f"{first[0].directory}/{framework.module}/__init__.py"
    scores = [0] * len(first)
    for path in [start, *_contested(records)]:
        actual = hash_of(rootfs, path)
        for number, record in enumerate(records):
            scores[number] += actual is not None and record.get(path) == actual
        if path == start and sorted(scores)[-2:] == [0, 1]:
            break
    best = max(scores)
    return first[scores.index(best)], best > 0 and scores.count(best) == 1


def _contested(records: list[dict[str, str]]) -> list[str]:
    """Some of the Python files of which the RECORDs say different things: short paths first, where builds differ."""
    differing = [
        path
        for path in records[0]
        if path.endswith(".py") and len({record[path] for record in records if path in record}) > 1
    ]
    return sorted(differing, key=lambda path: (path.count("/"), path))[:_MAX_HASHED]


def _wheel_directories(rootfs: Rootfs, interpreter: Interpreter) -> tuple[str, ...]:
    return tuple(
        f"{directory}/nvidia/{name}/lib"
        for directory in interpreter.site_directories
        for name in rootfs.names(f"{directory}/nvidia")
        if rootfs.is_directory(f"{directory}/nvidia/{name}/lib")
    )


def _toolkit_directories(rootfs: Rootfs, inventory: Inventory) -> tuple[str, ...]:
    """Directories of CUDA toolkits in their usual places, whether or not the loader looks there."""
    machine = inventory.architecture or "x86_64"
    candidates = []
    for name in rootfs.names("/usr/local"):
        if name.startswith("cuda"):
            candidates += [f"/usr/local/{name}/lib64", f"/usr/local/{name}/targets/{machine}-linux/lib"]
    candidates += [
        f"{interpreter.prefix}/lib" for interpreter in inventory.interpreters if interpreter.origin == "conda"
    ]
    return tuple(
        dict.fromkeys(
            real for candidate in candidates if (real := rootfs.resolve(candidate)) and rootfs.is_directory(real)
        )
    )


def _libraries(rootfs: Rootfs, inventory: Inventory, loader: Loader, toolkits: tuple[str, ...]) -> Iterator[GpuLibrary]:
    versions = {
        (distribution.directory, distribution.name): distribution.version for distribution in inventory.distributions
    }
    visible = {rootfs.resolve(directory) for directory in loader.directories}
    wheels = [
        directory for interpreter in inventory.interpreters for directory in _wheel_directories(rootfs, interpreter)
    ]
    seen = set()
    for directory in dict.fromkeys((*loader.directories, *toolkits, *wheels)):
        for name in rootfs.names(directory):
            match = _LIBRARY.match(name)
            real = rootfs.resolve(f"{directory}/{name}") if match else None
            if match is None or real is None or real in seen:
                continue
            seen.add(real)
            longest = _LIBRARY.match(posixpath.basename(real))
            version = longest[2] if longest else match[2]
            if directory in wheels:
                version = _wheel_version(directory.partition("/nvidia/")[0], match[1], match[2], versions) or version
            resolved = rootfs.resolve(directory) or directory
            yield GpuLibrary(match[1], version, f"{resolved}/{name}", resolved in visible or directory in wheels)


def _wheel_version(site: str, library: str, number: str, versions: dict[tuple[str, str], str]) -> str | None:
    wheel = _WHEELS[library]
    found = [versions.get((site, name)) for name in (wheel, *(f"{wheel}-cu{major}" for major in (11, 12, 13)))]
    known = [version for version in found if version]
    # Two wheels of one library: the file's own number tells them apart where it is a version at all.
    return next(
        (version for version in known if version.startswith(f"{number}.")), known[0] if len(known) == 1 else None
    )


def _drivers(rootfs: Rootfs, inventory: Inventory, loader: Loader) -> Iterator[tuple[str, str]]:
    """Every libcuda.so.1 that the image brings itself, with the way by which the loader finds it."""
    for word in re.split(r"[\s:]+", inventory.variable("LD_PRELOAD")):
        path = (word if "/" in word else loader.find(word, ())) if word else None
        real = rootfs.resolve(path) if path else None
        if path and real and "libcuda.so" in path + real and rootfs.is_file(real):
            yield real, "LD_PRELOAD"
    for directory in loader.library_path:
        if rootfs.is_file(f"{directory}/libcuda.so.1"):
            yield _named(rootfs, f"{directory}/libcuda.so.1"), "LD_LIBRARY_PATH"
    cached = loader.cache.get("libcuda.so.1")
    if cached and rootfs.is_file(cached):
        yield _named(rootfs, cached), "ld.so.cache"
    for directory in loader.defaults:
        if rootfs.is_file(f"{directory}/libcuda.so.1") and f"{directory}/libcuda.so.1" != cached:
            yield _named(rootfs, f"{directory}/libcuda.so.1"), "ld.so.cache"


def _driver_version(rootfs: Rootfs, path: str) -> str | None:
    """ "550.54.15" of a libcuda.so.1 that is a symlink to libcuda.so.550.54.15."""
    match = re.fullmatch(r"libcuda\.so\.(\d{3}(?:\.\d{1,4}){1,2})", posixpath.basename(rootfs.resolve(path) or ""))
    return match[1] if match else None


def _named(rootfs: Rootfs, path: str) -> str:
    """The path; that without symlinks where it leads into a toolkit's directory of stubs, which only its name tells."""
    real = rootfs.resolve(path) or path
    return real if "/stubs/" in real else path
