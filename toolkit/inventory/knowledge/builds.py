"""The build facts of a framework: parameters and result of each framework's `read_build`, and where a build fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.inventory.contents.model import Distribution
    from toolkit.inventory.formats.elf import Dynamic
    from toolkit.inventory.formats.rootfs import Rootfs


@dataclass(frozen=True, slots=True)
class Installed:
    """Where to look: the image, the framework's site directory, and what its interpreter sees by name.

    `dynamic` gives the dynamic section of a library of the image, read once.
    """

    rootfs: Rootfs
    dynamic: Callable[[str], Dynamic | None]
    directory: str
    distribution: Distribution
    visible: dict[str, Distribution]


@dataclass(frozen=True, slots=True)
class Want:
    """A library that another one, at the path `by`, loads. Without a required one there is no GPU, or no import."""

    soname: str
    by: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Preload:
    """Libraries that a framework loads by path from NVIDIA's wheels, by their names up to `.so`.

    `when` is "before" all else, "after" its first library is loaded, or on "failure" to load that.
    """

    when: str
    stems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PtxFails:
    """GPUs from `least` compute capability on, on which the PTX of `versions` of a framework does not run."""

    versions: str
    least: str
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class FrameworkBuild:
    """What a framework's files say of how it was built.

    `version` as the build says it ("2.5.1+cu124"), "" if it says nothing. `gpu`: whether it holds GPU code.
    `cuda` and `cudnn` are versions ("12.4", "9"), None if the build does not name them; `rocm` is that of a build for
    AMD's GPUs. `architectures` as nvcc
    names them ("sm_70", "compute_90"), empty if nothing tells. `complete` is False if files that belong to
    every build are not there. An import loads the libraries at `opens`, in this order, each with what it is linked
    with; then `wants` are opened by name. `accepts` are the versions of its other parts (name, specifier) that it
    does not refuse.
    """

    version: str
    gpu: bool
    cuda: str | None = None
    cudnn: str | None = None
    architectures: tuple[str, ...] = ()
    wants: tuple[Want, ...] = ()
    complete: bool = True
    opens: tuple[str, ...] = ()
    preloads: tuple[Preload, ...] = ()
    accepts: tuple[tuple[str, str], ...] = ()
    rocm: str | None = None
