"""The facts that the audit judges: plain values, gathered from the image and the user's requests."""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from packaging.version import Version

from toolkit.gpu.compatibility import Gpu
from toolkit.inventory.knowledge.frameworks import matches

if TYPE_CHECKING:
    from toolkit.gpu.others import OtherSoftware
    from toolkit.inventory.contents.model import Distribution, Inventory
    from toolkit.inventory.knowledge.builds import FrameworkBuild, Want
    from toolkit.inventory.knowledge.frameworks import Framework


@dataclass(frozen=True, slots=True)
class Loaded:
    """The loader's result for a needed library: its `path`, or None.

    `others` are libraries of the same stem on the loader's path, `unreachable` those with the very name that lie
    where the loader does not look.
    """

    want: Want
    path: str | None
    others: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A library at `path` that uses functions (`symbols`) which the one at `other`, loaded for it, does not have."""

    path: str
    other: str
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrameworkFacts:
    """One framework as one interpreter sees it.

    `known` is what ctk knows of the framework; `distribution` is what an import gets; `variants` are all distributions
    that install its module there. `companions` are the other visible distributions by name. `told_by_hash` says that
    RECORD hashes chose `distribution` among the variants. `lost` are shared libraries that a RECORD lists and that are
    not there. `tags` are those of the wheels (cp311-cp311-manylinux_2_17_x86_64) of the framework and its parts.
    `closed` is a directory on the way to the interpreter that only root may enter. `compiled` names the companions that
    require the framework and hold compiled code. `damaged` are libraries that the loader refuses, each with the reason,
    and `private` the files that users cannot read, each with the directory that is closed to them or with itself.
    """

    known: Framework
    interpreter: str
    distribution: Distribution
    variants: tuple[Distribution, ...]
    build: FrameworkBuild
    libraries: tuple[Loaded, ...]
    companions: dict[str, Distribution]
    by_default: bool = True
    told_by_hash: bool = False
    lost: tuple[str, ...] = ()
    tags: tuple[tuple[Distribution, tuple[str, ...]], ...] = ()
    closed: str | None = None
    disagreeing: tuple[Disagreement, ...] = ()
    compiled: frozenset[str] = frozenset()
    damaged: tuple[tuple[str, str], ...] = ()
    private: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.known.name

    @property
    def title(self) -> str:
        return self.known.title

    @property
    def parts(self) -> tuple[Distribution, ...]:
        """The other distributions that the framework comes in."""
        return tuple(part for name, part in self.companions.items() if matches(name, self.known.parts))

    @property
    def version(self) -> str:
        """The build's own version, else that of its metadata."""
        return self.build.version or self.distribution.version

    def advice(self, about: str) -> str | None:
        """The framework's own fix for a finding; None if ctk knows none."""
        fix = self.known.fix(about, self.version)
        cuda = (self.build.cuda or "").partition(".")[0]
        return fix.text.format(version=self.distribution.version, cuda=cuda) if fix else None

    def command(self, image: str) -> list[str]:
        """The command that calls this framework's Python in the image at a path."""
        return ["ctk", "run", image, self.interpreter]


@dataclass(frozen=True, slots=True)
class GpuLibrary:
    """One CUDA library of the image. `version` is as precise as its name or its wheel says; `visible` to the loader."""

    name: str
    version: str
    path: str
    visible: bool


@dataclass(frozen=True, slots=True)
class Network:
    """What the image has for NCCL: libibverbs as the loader finds it, its providers by name, and network plug-ins."""

    verbs: str | None = None
    providers: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The image as a whole.

    `drivers` are the libcuda that the image itself brings: (path, how the loader comes to it: "LD_PRELOAD",
    "LD_LIBRARY_PATH", "ld.so.cache"), `driver_versions` their versions by path, where the file's name has one.
    `disputed` are paths that a layer hides by marks which not every mount honours. `closed_path` are directories of
    PATH in root's home, which is closed to others. `program` is the Python that the image or its job runs, where a
    runscript or a command names it. `others` are programs for GPUs that are no framework; `for_root` are directories of
    root's own packages, which no user sees, with names of frameworks in them.
    """

    inventory: Inventory
    frameworks: tuple[FrameworkFacts, ...]
    libraries: tuple[GpuLibrary, ...]
    drivers: tuple[tuple[str, str], ...] = ()
    sif_architecture: str | None = None
    disputed: tuple[str, ...] = ()
    driver_versions: dict[str, str] = field(default_factory=dict)
    closed_path: tuple[str, ...] = ()
    network: Network = field(default_factory=Network)
    program: str | None = None
    others: tuple[OtherSoftware, ...] = ()
    for_root: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def library_version(self, name: str) -> str | None:
        """The most precise version of a CUDA library (`cudart`, `cudnn`) that the image has."""
        versions = [library.version for library in self.libraries if library.name == name]
        numbered = [version for version in versions if re.fullmatch(r"\d+(\.\d+)*", version)]
        return max(numbered, key=lambda version: (version.count("."), Version(version)), default=None)


@dataclass(frozen=True, slots=True)
class TargetMachine:
    """The machine to judge against; None if not given.

    `driver` is a version ("535.104.05"), `gpu` a name for users and `capability` its compute capability (7, 0), or
    `amd` the target of AMD's compilers. `architecture` is as uname says it and `glibc` the host's: those of the machine
    that audits, unless told otherwise. `named`: the user names the machine, so that an image of another architecture is
    wrong.
    """

    driver: str | None = None
    gpu: str | None = None
    capability: tuple[int, int] | None = None
    architecture: str | None = None
    glibc: str | None = None
    amd: str | None = None
    named: bool = False

    def its_gpu(self) -> Gpu | None:
        """The GPU to judge for; None if none is named."""
        if self.capability is None and self.amd is None:
            return None
        number = ".".join(map(str, self.capability or ()))
        return Gpu(self.gpu or (f"compute capability {number}" if number else str(self.amd)), self.capability, self.amd)


@dataclass(frozen=True, slots=True)
class ImageCase:
    """What a rule about an image judges: the image, for a target."""

    image: ImageFacts
    target: TargetMachine


@dataclass(frozen=True, slots=True)
class FrameworkCase:
    """What a rule about a framework judges: the framework, the image that holds it, and the target."""

    framework: FrameworkFacts
    image: ImageFacts
    target: TargetMachine


def this_machine() -> TargetMachine:
    """The machine that audits, as far as an image must fit any machine like it: no driver and no GPU."""
    return TargetMachine(architecture=platform.machine() or None, glibc=platform.libc_ver()[1] or None)
