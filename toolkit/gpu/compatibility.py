"""The typed form of `compatibility.toml`: drivers for CUDA releases, GPUs by name, and what was dropped when."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable

# What the name of a GPU may begin with, and what may follow it without changing its compute capability.
_BRAND = re.compile(r"NVIDIA|TESLA|GEFORCE|RTX(?=A\d)")
_MODEL = re.compile(r"(TI)?(SUPER)?(D|SXM\d?|PCIE|NVL\d*)?(\d+GB?)?")
_SIZE = re.compile(r"\d+(?:GB?|[ABCQE])?|SXM\d?|PCIE|NVL\d*")  # 32GB; 3g.20gb of MIG; 485 of nvidia-smi; 20C of a vGPU
_AMD = re.compile(r"\b(?:AMD|RADEON|RYZEN|INSTINCT|MI\d{1,3}[AX]?|GFX\w+|RX)\b", re.IGNORECASE)
_TEXT = re.compile(r"[A-Za-z0-9 ._:()/+-]*")
_MAX_WORDS = 4  # of one name: RTX 4000 SFF Ada
_MAX_NEAR = 3
_FILE = Path(__file__).with_name("compatibility.toml")
Capability = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DriverFloor:
    """The oldest driver for a CUDA release, and the one that supports all of it, if known."""

    cuda: str
    minimum: str
    full: str | None


@dataclass(frozen=True, slots=True)
class Dropped:
    """From `versions` on, `what` ("CUDA" or "cuDNN") serves no GPU older than `least`."""

    what: str
    versions: str
    least: Capability
    reason: str
    source: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The drivers that know a generation of GPUs: the `first` one, and the `last` branch, None if not known."""

    name: str
    capabilities: frozenset[Capability]
    first: str | None
    last: int | None
    source: str


@dataclass(frozen=True, slots=True)
class AmdTarget:
    """GPUs of AMD by `names`, the `target` that compilers name, and the `first` and `last` ROCm that support it."""

    target: str
    names: tuple[str, ...]
    first: str | None
    last: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU type: its name for users, and NVIDIA's compute capability, else the target of AMD's compilers.

    `driver` is that of its nodes, where they differ from those of other GPUs.
    """

    name: str
    capability: Capability | None = None
    amd: str | None = None
    driver: str | None = None

    def __str__(self) -> str:
        if self.capability is None:
            return f"{self.name} ({self.amd})"
        return f"{self.name} (compute capability {'.'.join(map(str, self.capability))})"


@dataclass(frozen=True, slots=True)
class Integrated:
    """Jetson's GPUs, which run the binary code of other GPUs only where the CUDA release is in `unified`."""

    capabilities: frozenset[Capability]
    unified: str
    renamed: frozenset[Capability]


@dataclass(frozen=True, slots=True)
class Compatibility:
    """All of `compatibility.toml`. `forward` is, by GPU name, whether forward compatibility supports it.

    `around` are words beside the name of a GPU, `products` is the GPU of a machine, `processors` is the architecture of
    the only processors beside which a GPU exists, `arm` are the capabilities of GPUs that exist only beside Arm
    processors, `first_cuda` is the first CUDA release that has a GPU's architecture.
    """

    drivers: tuple[DriverFloor, ...]
    dropped: tuple[Dropped, ...]
    gpus: dict[str, Capability]
    around: frozenset[str]
    products: dict[str, str]
    generations: tuple[tuple[str, Capability], ...]
    integrated: Integrated
    forward: dict[str, bool]
    processors: dict[str, str]
    arm: frozenset[Capability]
    first_cuda: dict[Capability, str]
    limits: tuple[Limits, ...]
    amd: tuple[AmdTarget, ...]

    def floor(self, cuda: str) -> DriverFloor | None:
        """The driver that a CUDA version ("12.4", "12.5.1", "11") needs; None if no row names it."""
        parts = cuda.split(".")
        by_release = {row.cuda: row for row in self.drivers}
        return by_release.get(".".join(parts[:2])) or by_release.get(parts[0])

    def amd_target(self, name: str) -> AmdTarget | None:
        """The target of AMD's compilers for a GPU that AMD calls `name`; None if it is none of AMD's."""
        return next((row for row in self.amd if name in row.names), None)


@cache
def compatibility() -> Compatibility:
    """Read `compatibility.toml` once."""
    content = read_toml(_FILE).content
    return Compatibility(
        drivers=tuple(DriverFloor(row["cuda"], row["minimum"], row.get("full")) for row in content["drivers"]["rows"]),
        dropped=tuple(
            Dropped(row["what"], row["versions"], _pair(row["least"]), row["reason"], row["source"])
            for row in content["dropped"]
        ),
        gpus={name: _pair(value) for value, names in content["gpus"]["names"].items() for name in names},
        around=frozenset(content["gpus"]["around"]),
        products=content["gpus"]["products"],
        generations=tuple((row["name"], _pair(row["capability"])) for row in content["generations"]),
        integrated=Integrated(
            frozenset(map(_pair, content["integrated"]["capabilities"])),
            content["integrated"]["unified"],
            frozenset(map(_pair, content["integrated"]["renamed"])),
        ),
        forward={
            **dict.fromkeys(content["forward"]["supported"], True),
            **dict.fromkeys(content["forward"]["unsupported"], False),
        },
        processors={
            **dict.fromkeys(content["arm"]["gpus"], "aarch64"),
            **dict.fromkeys(content["x86"]["gpus"], "x86_64"),
        },
        arm=frozenset(map(_pair, [*content["arm"]["capabilities"], *content["integrated"]["capabilities"]])),
        first_cuda={_pair(capability): cuda for capability, cuda in content["first"]["cuda"].items()},
        limits=tuple(
            Limits(
                row["name"],
                frozenset(map(_pair, row["capabilities"])),
                row.get("first"),
                row.get("last"),
                row["source"],
            )
            for row in content["limits"]
        ),
        amd=tuple(
            AmdTarget(row["target"], tuple(row["names"]), row.get("first"), row.get("last"), row["source"])
            for row in content["amd"]
        ),
    )


def find_gpu(text: str, driver: str | None = None) -> Gpu:
    """The GPU that "V100", "Tesla V100-SXM2-32GB", "sm_70", "7.0", "MI300X" or "gfx942" means.

    Raises WrongInput for another, and for a text that has more than the name and what vendors write around it.
    """
    word = text.strip().lower()
    exact = re.fullmatch(r"(?:sm_?|compute_)(\d{1,2})(\d)[a-z]?|(\d{1,2})\.(\d)", word)
    if exact:
        major, minor, *_ = [group for group in exact.groups() if group is not None]
        return Gpu(text, (int(major), int(minor)), driver=driver)
    target = word.partition(":")[0]  # rocminfo and PyTorch write gfx90a:sramecc+:xnack-
    if any(target == row.target for row in compatibility().amd):
        return Gpu(text, amd=target)
    if "," in text:
        raise WrongInput(f"{text!r} names several GPUs", fix=f"Name each by itself: {text.split(',')[0].strip()}")
    # "Quadro RTX 5000 Ada" has the names of two GPUs, of Turing and of Ada; A10 is only a part of "A100".
    names = {name for name, _ in _found(text)}
    whole = [name for name in names if not any(name in other for other in names - {name})]
    meant = {_named(name, text, driver) for name in whole if _is_whole(name, text)}
    if len(meant) == 1 and _TEXT.fullmatch(text) and _is_whole(gpu_name(text) or "", text):
        return meant.pop()
    if _AMD.search(text):
        known = ", ".join(name for row in compatibility().amd for name in row.names)
        raise WrongInput(
            f"ctk does not know the GPU {text!r}", fix=f"Of AMD's GPUs, ctk knows {known}. Leave out --gpu for others."
        )
    raise WrongInput(
        f"ctk does not know the GPU {text!r}.{_near(text)}",
        fix="Name its compute capability instead, as nvidia-smi --query-gpu=compute_cap shows it: --gpu 7.0",
    )


def parse_gpu(text: str) -> Capability:
    """The compute capability of a GPU of NVIDIA, as `find_gpu` reads it. Raises WrongInput for any other."""
    gpu = find_gpu(text)
    if gpu.capability is None:
        raise WrongInput(f"{text!r} is a GPU of AMD, which has no compute capability", fix="Name a GPU of NVIDIA.")
    return gpu.capability


def listed_gpus(options: Iterable[str]) -> tuple[str, ...]:
    """The GPU types that values of `--gpu` name: one each, or several with commas between."""
    return tuple(gpu.strip() for option in options for gpu in option.split(","))


def gpu_name(text: str) -> str | None:
    """The name in ctk's table that a text means: "V100" for "Tesla V100-SXM2-32GB"."""
    return max((name for name, _ in _found(text)), key=len, default=None)


def _named(name: str, text: str, driver: str | None) -> Gpu:
    row = compatibility().amd_target(name)
    return Gpu(text, amd=row.target) if row else Gpu(text, compatibility().gpus[name], driver=driver)


def _is_whole(name: str, text: str) -> bool:
    """Whether a text has nothing but the name of a GPU and what vendors write around it."""
    return all(_is_known(word, name) for word in _around(name, text))


def _around(name: str, text: str) -> list[str]:
    """The words of a text that do not belong to the name of the GPU."""
    words = _words(text)
    taken = next(place for found, place in _found(text) if found == name)
    return words[: taken.start] + words[taken.stop :]


def _is_known(word: str, name: str) -> bool:
    """Whether a word may stand beside the name of a GPU; rocm-smi writes `MI250X / MI250`."""
    row = compatibility().amd_target(name)
    return word in compatibility().around or _SIZE.fullmatch(word) is not None or bool(row and word in row.names)


def _found(text: str) -> list[tuple[str, range]]:
    """The names in a text, each with the words that it consists of."""
    words = _words(text)
    return [
        (name, range(start, end))
        for start in range(len(words))
        for end in range(start + 1, min(start + _MAX_WORDS, len(words)) + 1)
        for name in _names()
        if (joined := "".join(words[start:end])).startswith(name) and _MODEL.fullmatch(joined, len(name))
    ]


@cache
def _names() -> tuple[str, ...]:
    return (*compatibility().gpus, *(name for row in compatibility().amd for name in row.names))


def _words(text: str) -> list[str]:
    return re.findall(r"[A-Z0-9]+", _BRAND.sub(" ", text.upper()))


def _near(text: str) -> str:
    """' Near matches: A4000, A40.' with its leading space, or nothing."""
    word = "".join(_words(text))
    known = _names()
    sold = [gpu for product, gpu in compatibility().products.items() if product in word]
    named = [name for name, _ in _found(text)]
    containing = [name for name in known if len(word) > 1 and word in name]
    near = list(dict.fromkeys([*sold, *named, *containing, *get_close_matches(word, known, n=_MAX_NEAR)]))[:_MAX_NEAR]
    return f" Near matches: {', '.join(near)}." if near else ""


def parse_driver(text: str) -> tuple[int, ...]:
    """(535, 104, 5) of "535.104.05". Raises WrongInput if it is no driver version."""
    if not re.fullmatch(r"\d{3}(\.\d{1,4}){0,2}", text.strip()):
        raise WrongInput(
            f"{text!r} is not an NVIDIA driver version",
            fix="The format is 535.104.05. On the GPU node: cat /sys/module/nvidia/version",
        )
    return tuple(int(part) for part in text.strip().split("."))


def _pair(text: str) -> Capability:
    major, minor = text.split(".")
    return int(major), int(minor)
