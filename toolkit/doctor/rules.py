"""Judge the facts about a host: whether a user can build and run images there."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from toolkit.doctor.network import NETWORK_RULES
from toolkit.runtime.area import scratch_of, scratch_variable
from toolkit.runtime.known_errors import explain
from toolkit.support.enums import StrEnum
from toolkit.support.files import format_size
from toolkit.support.findings import Finding, Severity, apply_rules
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.doctor.facts import HostFacts
    from toolkit.doctor.trials import Disk
    from toolkit.support.findings import Rule

_ROOM_FOR_A_GPU_IMAGE = 20 << 30  # bytes: 3 to 8 GB of image, its unpacked tree, and the downloaded layers
_ROOM_IN_TMP = 1 << 30  # bytes; a framework's compiled kernels and a data loader's shared files
_ASK = "Ask the administrator"
# A build runs programs in what it unpacks; mount(8), `noexec`.
_NOEXEC = "the disk is mounted with noexec, so builds fail there."
_ASK_RANGE = f"{_ASK} for a range in /etc/subuid and /etc/subgid (usermod --add-subuids 100000-165535 --add-subgids …)."


def judge_host(facts: HostFacts) -> tuple[Finding, ...]:
    """All findings, in the order in which a user needs them."""
    return apply_rules(RULES, facts)


def _runtime(facts: HostFacts) -> Iterator[Finding]:
    if facts.runtime is None:
        fix = "Try `module avail apptainer singularity`, or ask the administrator to install Apptainer."
        yield Finding("no-runtime", Severity.ERROR, f"Runtime: {facts.runtime_error}.", fix)
        return
    words = f"Runtime: {facts.runtime.version_text} ({facts.runtime.program})"
    if facts.runtime.needs_userns:
        words += "; root lacks capabilities on this host, so it runs in a user namespace"
    yield Finding("runtime", Severity.OK, f"{words}.")


class BuildMode(StrEnum):
    """How an image can be built on a host without sudo."""

    ROOT = "root"
    SUBUID = "subuid"
    ROOT_MAPPED = "root-mapped"
    FAKEROOT_COMMAND = "fakeroot-command"
    NONE = "none"


def build_mode(facts: HostFacts) -> BuildMode:
    """How an image can be built here.

    The order is that of apptainer's own choice (its documentation, "Fakeroot feature").
    """
    if facts.root and facts.full_capabilities:
        return BuildMode.ROOT
    # An AppArmor profile may allow the runtime what it forbids `unshare`.
    namespaces = facts.user_namespaces or (facts.apparmor_limit and facts.trial is not None and facts.trial.built)
    if namespaces and facts.subordinate_ids and facts.id_mappers:
        return BuildMode.SUBUID
    if namespaces:
        return BuildMode.ROOT_MAPPED
    return BuildMode.FAKEROOT_COMMAND if facts.fakeroot_command else BuildMode.NONE


def _build_mode(facts: HostFacts) -> Iterator[Finding]:
    mode = build_mode(facts)
    if mode is BuildMode.ROOT:
        yield Finding("build-root", Severity.OK, "Building: as root.")
    elif mode is BuildMode.SUBUID:
        yield Finding("build-subuid", Severity.OK, "Building: --fakeroot with subordinate ids; all packages install.")
    elif mode is BuildMode.ROOT_MAPPED:
        if facts.id_mappers:
            lacking, fix = "a range of subordinate ids", _ASK_RANGE
        else:
            lacking, fix = "newuidmap and newgidmap (package uidmap)", f"{_ASK} for uidmap."
        message = f"Building: --fakeroot in a root-mapped namespace; some packages do not install without {lacking}."
        yield Finding("build-root-mapped", Severity.WARNING, message, fix)
    elif mode is BuildMode.FAKEROOT_COMMAND:
        message = "Building: only with the fakeroot command, because this host allows no user namespaces."
        yield Finding("build-fakeroot-command", Severity.WARNING, message, f"{_ASK} about user.max_user_namespaces.")
    else:
        message = "Building: not possible: this host has neither user namespaces nor the fakeroot command."
        fix = f"{_ASK} about user.max_user_namespaces, or build elsewhere and copy the image."
        yield Finding("build-impossible", Severity.ERROR, message, fix)


def _apparmor(facts: HostFacts) -> Iterator[Finding]:
    """Ubuntu 24.04 lets only programs with a profile create user namespaces (its release notes)."""
    if not facts.apparmor_limit or facts.root or facts.user_namespaces:
        return
    what = "AppArmor: user namespaces are restricted (kernel.apparmor_restrict_unprivileged_userns=1)"
    if facts.trial is not None and facts.trial.built and facts.trial.ran:
        yield Finding("apparmor-userns-allowed", Severity.OK, f"{what}, but a profile allows them for the runtime.")
    else:
        fix = f"{_ASK} for an AppArmor profile of the runtime, which Apptainer's own packages for Ubuntu install."
        yield Finding("apparmor-userns", Severity.WARNING, f"{what}, also for the runtime.", fix)


def _trial(facts: HostFacts) -> Iterator[Finding]:
    trial = facts.trial
    if trial is None:
        no_place = "the work area is not usable, or /usr/bin/true cannot be bound into a container"
        reason = "there is no runtime" if facts.runtime is None else no_place
        yield Finding("trial-skipped", Severity.INFO, f"Trial: no image was built and run, because {reason}.")
    elif trial.built and trial.ran:
        yield Finding("trial", Severity.OK, "Trial: a small image was built and run.")
    else:
        known = explain(trial.lines, namespaces_left=None if facts.user_namespaces else False)
        last = next((line for line in reversed(trial.lines) if line.strip()), "no message")
        reason = known.meaning if known else f"the runtime reports: {last.strip()}"
        yield Finding(
            "trial-run-failed" if trial.built else "trial-build-failed",
            Severity.ERROR,
            f"Trial: {'running' if trial.built else 'building'} a small image fails: {reason}.",
            known.fix if known else f"{_ASK}, with the output of `ctk doctor --report ticket.txt`.",
        )


def _fuse(facts: HostFacts) -> Iterator[Finding]:
    if facts.fuse_device and facts.fuse_mounter:
        yield Finding("fuse", Severity.OK, "Mounting images: FUSE works for users.")
    elif facts.root and facts.full_capabilities:
        yield Finding("fuse-not-needed", Severity.OK, "Mounting images: as root, without FUSE.")
    else:
        lacking = "users cannot open /dev/fuse" if not facts.fuse_device else "squashfuse is not installed"
        message = f"Mounting images: {lacking}; `apptainer exec` fails unless the runtime is setuid."
        fix = f"{_ASK}: mode 0666 for /dev/fuse and the packages squashfuse and fuse2fs, or a setuid runtime."
        yield Finding("no-fuse", Severity.WARNING, message, fix)


def _overlay(facts: HostFacts) -> Iterator[Finding]:
    # Linux 5.11 lets an unprivileged user mount overlayfs (kernelnewbies.org/Linux_5.11).
    if facts.kernel >= (5, 11):
        yield Finding("overlay", Severity.OK, "Overlays: the kernel mounts them for users.")
    elif facts.fuse_overlay:
        yield Finding("overlay-fuse", Severity.OK, "Overlays: with fuse-overlayfs.")
    else:
        message = "Overlays: neither the kernel nor fuse-overlayfs can mount them."
        yield Finding("no-overlay", Severity.WARNING, message, f"{_ASK} for the package fuse-overlayfs.")


def _layers(facts: HostFacts) -> Iterator[Finding]:
    """Whether `ctk build` makes layered images here, and whether such images run here."""
    trial = facts.trial.layers if facts.trial is not None else None
    if trial is not None and trial.problem is not None:
        message = f"Layers: not usable, {trial.problem}. ctk builds flat images here."
        fix = f"{_ASK} for `enable overlay = yes` in apptainer.conf and the package squashfuse."
        yield Finding("layers-not-mounted", Severity.WARNING, message, fix)
    elif (reason := _only_flat(facts)) is not None:
        message = f"Layers: `ctk build` makes flat images, because {reason}; each change needs a complete rebuild."
        yield Finding("no-layers", Severity.INFO, message)
    elif trial is not None and trial.seconds is not None:
        cost = f"one layer adds {1000 * trial.seconds:.0f} ms to each start of a container"
        message = f"Layers: usable; `ctk build` adds what changed as a layer, in seconds; {cost}."
        yield Finding("layers", Severity.OK, message)


def _only_flat(facts: HostFacts) -> str | None:
    if facts.site.layers is not None and not facts.site.layers.value:
        return f"the site sets layers = false ({facts.site.layers.origin})"
    if not facts.packer:
        return "there is no mksquashfs on this host"
    return facts.owners


def _packer(facts: HostFacts) -> Iterator[Finding]:
    if facts.packer:
        yield Finding("mksquashfs", Severity.OK, "Packing images: mksquashfs is installed.")
    else:
        fix = f"{_ASK} for squashfs-tools, unless the runtime has its own."
        yield Finding("no-mksquashfs", Severity.WARNING, "Packing images: there is no mksquashfs on PATH.", fix)


def _work_area(facts: HostFacts) -> Iterator[Finding]:
    disk = facts.area_disk
    words = f"Work area: {facts.area.path} (chosen by {facts.area.chosen_by})"
    if disk.problem is not None:
        fix = "Set CTK_HOME to a directory that you can write to, for example on scratch."
        yield Finding("work-area-not-writable", Severity.ERROR, f"{words} is not writable ({disk.problem}).", fix)
        return
    if _has_room(disk):
        yield Finding("work-area", Severity.OK, f"{words}, {format_size(disk.free)} free.")
    else:
        fix = f"Set CTK_HOME to a directory with at least {format_size(_ROOM_FOR_A_GPU_IMAGE)}."
        yield Finding("small-work-area", Severity.WARNING, f"{words}, {_little(disk)}", fix)
    if disk.noexec:
        fix = "Set CTK_HOME to a directory on another disk."
        yield Finding("work-area-noexec", Severity.WARNING, f"{words}: {_NOEXEC}", fix)


def _has_room(disk: Disk) -> bool:
    return disk.free >= _ROOM_FOR_A_GPU_IMAGE


def _little(disk: Disk) -> str:
    return f"only {format_size(disk.free)} free, which may not be enough for a GPU image."


def _trust(facts: HostFacts) -> Iterator[Finding]:
    """Other users who could change what is executed or built from the work area."""
    trust = facts.trust
    if trust.objection is not None:
        message = f"Work area: not used, because {trust.objection}."
        fix = "Set CTK_HOME to a directory of your own, for example on scratch."
        yield Finding("work-area-not-trusted", Severity.ERROR, message, fix)
    if trust.open:
        shown = ", ".join(map(str, trust.open[:3])) + (", …" if len(trust.open) > 3 else "")
        fix = command_line(["chmod", "go-w", *map(str, trust.open[:3])]) + " (the next ctk command does it for all)"
        yield Finding("work-area-open", Severity.WARNING, f"Work area: others can write to {shown}.", fix)
    if (parent := trust.open_above) is not None:
        yield Finding("work-area-parent-open", Severity.WARNING, f"Work area: {_not_sticky(parent)}", _sticky(parent))
    if (parent := facts.scratch_open_above) is not None:
        message = f"Builds unpack in {scratch_of(facts.area)}: {_not_sticky(parent)}"
        yield Finding("scratch-open", Severity.WARNING, message, _sticky(parent))


def _not_sticky(parent: Path) -> str:
    return f"any user can rename files in {parent}, which has no sticky bit."


def _sticky(parent: Path) -> str:
    return f"{_ASK} for `chmod +t {quote(str(parent))}`."


def _scratch(facts: HostFacts) -> Iterator[Finding]:
    variable, disk = scratch_variable(), facts.scratch_disk
    if variable is None:
        return
    words = f"Builds unpack in {scratch_of(facts.area)} (set by {variable})"
    fix = f"Unset {variable} to build in the work area, or set it to a directory"
    if disk.problem is not None:
        message = f"{words}, not writable ({disk.problem})."
        yield Finding("scratch-not-writable", Severity.ERROR, message, f"{fix} that you can write to.")
        return
    if _has_room(disk):
        yield Finding("scratch", Severity.OK, f"{words}, {format_size(disk.free)} free.")
    else:
        fix += f" with at least {format_size(_ROOM_FOR_A_GPU_IMAGE)}."
        yield Finding("small-scratch", Severity.WARNING, f"{words}, {_little(disk)}", fix)
    if disk.noexec:
        yield Finding("scratch-noexec", Severity.WARNING, f"{words}: {_NOEXEC}", f"Unset {variable}.")


def _tmp(facts: HostFacts) -> Iterator[Finding]:
    """Containers show the /tmp of their host (apptainer.conf: mount tmp)."""
    disk = facts.tmp_disk
    words = f"Temporary files (/tmp): {format_size(disk.free)} free"
    if disk.problem is not None:
        message = f"Temporary files: not writable ({disk.problem})."
        yield Finding("tmp-not-writable", Severity.WARNING, message, f"{_ASK} for a /tmp with mode 1777.")
    elif disk.free < _ROOM_IN_TMP:
        fix = 'Remove your own files from /tmp (`find /tmp -user "$USER"`).'
        yield Finding(
            "small-tmp", Severity.WARNING, f"{words}, which may not be enough for programs in a container.", fix
        )
    elif disk.noexec:
        message = f"{words}, mounted with noexec: programs that compile at run time, as Triton does, fail there."
        yield Finding("tmp-noexec", Severity.WARNING, message, "In jobs, set TMPDIR to another disk.")
    else:
        yield Finding("tmp", Severity.OK, f"{words}.")


def _home(facts: HostFacts) -> Iterator[Finding]:
    fix = "Set HOME to a directory of your own."
    if facts.home is None:
        yield Finding("no-home", Severity.WARNING, "Home: this user has no home directory.", fix)
    elif facts.home_disk is None:
        yield Finding("home-missing", Severity.WARNING, f"Home: {facts.home} is not a directory on this host.", fix)
    elif facts.home_disk.problem is not None:
        message = f"Home: not writable ({facts.home_disk.problem}); programs cannot save their settings and caches."
        yield Finding("home-not-writable", Severity.WARNING, message, fix)
    else:
        yield Finding("home", Severity.OK, f"Home: writable, {format_size(facts.home_disk.free)} free on its disk.")


def _quota(facts: HostFacts) -> Iterator[Finding]:
    if facts.quota is not None:
        yield Finding("quota", Severity.INFO, "Quota (`quota -s`): " + " | ".join(facts.quota.splitlines()))


def _slurm(facts: HostFacts) -> Iterator[Finding]:
    if facts.slurm is not None:
        yield Finding("slurm", Severity.OK, f"Slurm: partitions {facts.slurm}.")
    elif facts.slurm_error is not None:
        message = f"Slurm: the commands are installed, but no controller responds ({facts.slurm_error})."
        yield Finding("slurm-silent", Severity.WARNING, message, facts.practice)
    else:
        yield Finding("no-slurm", Severity.INFO, "Slurm: there is no sbatch on PATH.", facts.practice)


def _cgroups(facts: HostFacts) -> Iterator[Finding]:
    limits = "the scheduler can limit memory, but `apptainer exec --memory` needs root."
    if facts.cgroups == "v2":
        yield Finding("cgroups", Severity.OK, "Cgroups: version 2.")
    elif facts.cgroups:
        yield Finding("cgroups-old", Severity.INFO, f"Cgroups: version 1; {limits}")
    else:
        yield Finding("no-cgroups", Severity.INFO, f"Cgroups: none; {limits}")


def _gpu(facts: HostFacts) -> Iterator[Finding]:
    gpu = facts.gpu
    if gpu.present:
        yield Finding("host-gpu", Severity.OK, f"GPU: {len(gpu.devices)} device(s), driver {gpu.driver}.")
    elif gpu.driver is not None:
        message = f"GPU: the driver {gpu.driver} is loaded, but this process sees no device."
        yield Finding("gpu-hidden", Severity.WARNING, message, "Inside a job, ask the scheduler for one (`--gpus 1`).")
    else:
        message = "GPU: none on this host, as on most login nodes. Building images does not need one."
        yield Finding("no-gpu", Severity.INFO, message)


def _network(facts: HostFacts) -> tuple[Finding, ...]:
    return apply_rules(NETWORK_RULES, facts.network)


def _site(facts: HostFacts) -> Iterator[Finding]:
    for name in facts.site.__dataclass_fields__:
        if (setting := getattr(facts.site, name)) is not None:
            message = f"Site: {name} is {setting.value!r}, set by {setting.origin}."
            yield Finding("site-setting", Severity.INFO, message)


# A new rule is a function here, an entry for its code in `codes/`, and a test.
RULES: tuple[Rule[HostFacts], ...] = (
    _runtime,
    _build_mode,
    _apparmor,
    _trial,
    _fuse,
    _overlay,
    _packer,
    _layers,
    _work_area,
    _trust,
    _scratch,
    _tmp,
    _home,
    _quota,
    _slurm,
    _cgroups,
    _gpu,
    _network,
    _site,
)
