"""The image as a whole: leftovers, mixed installers, user site, architecture, glibc."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, matches
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import ImageCase
    from toolkit.inventory.contents.model import Distribution

# CUDA 13's wheels have no suffix, but for those that follow another numbering (nvidia-cudnn-cu13, nvidia-nccl-cu13).
_SUFFIX = re.compile(r"-cu(\d+)$")
_UNSUFFIXED = {"nvidia-cublas", "nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-cupti"}
# The variables that decide where Python and the loader look, and which devices every framework sees.
_READ_HERE = ("PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "CUDA_VISIBLE_DEVICES")
_GO_ARCHITECTURES = {
    "amd64": "x86_64",
    "arm64": "aarch64",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
    "riscv64": "riscv64",
}


def mixed_cuda_wheels(case: ImageCase) -> Iterator[Finding]:
    """NVIDIA's wheels of two CUDA majors: pip never removes those of a framework that was replaced."""
    used = {
        str(framework.build.cuda).partition(".")[0]
        for framework in case.image.frameworks
        if framework.build.gpu and framework.build.cuda
    }
    for interpreter in case.image.inventory.interpreters:
        by_major: dict[str, list[str]] = {}
        for distribution in case.image.inventory.visible(interpreter).values():
            major = wheel_major(distribution)
            if major is not None:
                by_major.setdefault(major, []).append(distribution.name)
        orphaned = sorted(set(by_major) - used, key=int)
        if len(by_major) < 2 or not orphaned:
            continue
        majors = " and ".join(sorted(by_major, key=int))
        leftover = [name for major in orphaned for name in sorted(by_major[major])]
        names = f"{', '.join(leftover[:4])}{', …' if len(leftover) > 4 else ''}"
        yield Finding(
            "mixed-cuda-wheels",
            Severity.WARNING,
            f"{interpreter.path} finds NVIDIA wheels for CUDA {majors}; no framework here uses {names}.",
            "Leftovers of a replaced framework: rebuild the image from its base.",
        )


def wheel_major(distribution: Distribution) -> str | None:
    """The CUDA major of one of NVIDIA's wheels, None for any other distribution."""
    if not matches(distribution.name, knowledge().nvidia):
        return None
    match = _SUFFIX.search(distribution.name)
    if match:
        return match[1]
    return distribution.version.partition(".")[0] if distribution.name in _UNSUFFIXED else None


def mixed_installers(case: ImageCase) -> Iterator[Finding]:
    """Packages that conda installed and pip replaced: both track the same files."""
    for interpreter in case.image.inventory.interpreters:
        recorded: dict[str, str] = {
            canonicalize_name(package.name): package.version
            for package in case.image.inventory.conda_packages
            if package.prefix == interpreter.prefix
        }
        again = [
            f"{distribution.name} (conda {recorded[distribution.name]}, now {distribution.version})"
            for distribution in case.image.inventory.visible(interpreter).values()
            if distribution.name in recorded
            and distribution.installer in ("pip", "uv")
            and distribution.version != recorded[distribution.name]
        ]
        if again:
            yield Finding(
                "mixed-pip-conda",
                Severity.WARNING,
                f"In {interpreter.prefix}, pip replaced what conda installed: {', '.join(again)}.",
                "Use only the installer that the base was made with.",
            )


def user_site(case: ImageCase) -> Iterator[Finding]:
    """Python adds the user's ~/.local, unless the image disables it."""
    if case.image.inventory.interpreters and not case.image.inventory.variable("PYTHONNOUSERSITE"):
        yield Finding(
            "user-site-enabled",
            Severity.INFO,
            "Python in this image also searches the user's ~/.local, before the image's own packages.",
            "`ctk run` disables this; elsewhere set PYTHONNOUSERSITE=1 in the image's environment.",
        )


def architecture(case: ImageCase) -> Iterator[Finding]:
    """Programs for another architecture, or a header that contradicts the programs."""
    own = case.image.inventory.architecture
    if own is None:
        return
    header = _GO_ARCHITECTURES.get(case.image.sif_architecture or "")
    if header is not None and header != own:
        yield Finding(
            "architecture-contradiction",
            Severity.WARNING,
            f"The image's header says {header}, but its programs are for {own}: the runtime will refuse it.",
            "Rebuild it on a machine of the right architecture.",
        )
    target = case.target
    if target.architecture and own != target.architecture:
        what = f"nodes with {target.gpu} are" if target.gpu else "the target is" if target.named else "this machine is"
        yield Finding(
            "wrong-architecture",
            Severity.ERROR if target.named else Severity.WARNING,
            f"The image is for {own}, and {what} {target.architecture}.",
            f"It runs only on {own} nodes: --arch {own} checks for them. For {target.architecture}, rebuild it there."
            if target.named
            else f"It runs only on {own} nodes. For this machine, rebuild it here.",
        )


def old_glibc(case: ImageCase) -> Iterator[Finding]:
    """The host's driver libraries may want a newer glibc than the image has. Source: apptainer issues 598, 945."""
    own = case.image.inventory.glibc
    if own and case.target.glibc and _pair(own) < _pair(case.target.glibc):
        yield Finding(
            "glibc-older-than-host",
            Severity.INFO,
            f"The image has glibc {own}, this host {case.target.glibc}: libcuda supports old versions, "
            "but the host's GL libraries, which --nv also binds, may need the newer one.",
        )


def disputed_layers(case: ImageCase) -> Iterator[Finding]:
    """A layer that replaces directories by a mark. Apptainer 1.4.5 without root was seen to ignore every such mark."""
    disputed = case.image.disputed
    if disputed:
        some = ", ".join(disputed[:3]) + (", …" if len(disputed) > 3 else "")
        yield Finding(
            "layer-marks-ignored",
            Severity.WARNING,
            f"A layer hides {some} with a marker that the kernel's overlayfs may ignore: the "
            " lower layer's files can show through when the image runs.",
            "Build the layer with ctk, which writes a whiteout for each hidden name, or build a flat image.",
        )


def framework_elsewhere(case: ImageCase) -> Iterator[Finding]:
    """A framework that the default Python does not see: found all the same, with how to call it."""
    default, program = case.image.inventory.default_interpreter(), case.image.program
    runs = f"`python` in this image is {default.path if default and default.default else 'missing'}"
    for framework in case.image.frameworks:
        if not framework.by_default and (default is not None or program is not None):
            yield Finding(
                "framework-not-default",
                Severity.WARNING,
                f"{framework.title} {framework.version} is installed for {framework.interpreter}, but "
                f"{f'the image runs {program}' if program else runs}.",
                f"{shlex.join(framework.command(case.image.inventory.image))} SCRIPT, or put its directory first "
                "in PATH.",
            )


def environment_unknown(case: ImageCase) -> Iterator[Finding]:
    """Variables on which the verdict rests, and of which only running the image's scripts tells the value."""
    platforms = (known.platform for known in knowledge().frameworks if known.platform)
    read_here = {*_READ_HERE, *(name for platform in platforms for name in platform.variables)}
    for variable in case.image.inventory.uncertain:
        if variable.name in read_here:
            value = case.image.inventory.variable(variable.name)
            yield Finding(
                "environment-unknown",
                Severity.WARNING if variable.open else Severity.INFO,
                f"{variable.script} sets {variable.name} at run time; the audit assumes "
                f"{f'{variable.name}={value}' if value else 'that it is not set'}.",
                f"Set {variable.name} to a fixed value ([environment] of a recipe, %environment), or compare with: "
                f"{shlex.join(['ctk', 'run', case.image.inventory.image, 'printenv', variable.name])}",
            )


def no_framework(case: ImageCase) -> Iterator[Finding]:
    """No Python that users may run sees a framework that ctk knows."""
    if case.image.frameworks:
        return
    what = "GPU framework that ctk knows" if case.image.inventory.interpreters else "Python"
    message, fix = f"The image has no {what}.", "`ctk bases` shows images to start from."
    if case.image.closed_path:
        message = (
            f"The image has no {what} that users can access: PATH contains {', '.join(case.image.closed_path)}, "
            "and only root can enter /root."
        )
        fix = "Install Python and the framework outside /root, for example in /opt."
    if case.image.others:
        message += f" It has {', '.join(map(str, case.image.others))}, of which ctk knows what the next findings say."
    yield Finding("no-framework", Severity.WARNING, message, fix)


def _pair(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])
