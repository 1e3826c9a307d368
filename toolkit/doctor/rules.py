"""What the facts about a host mean for a person who wants to build and run images there."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from toolkit.support.files import size_in_words
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from toolkit.doctor.facts import HostFacts

_ROOM_FOR_A_GPU_IMAGE = 20 << 30  # octets: 3 to 8 GB of image, its unpacked tree, and the downloaded layers
_ASK = "Ask the administrator"


def judge(facts: HostFacts) -> tuple[Finding, ...]:
    """All findings, in the order in which a person needs the things."""
    return (
        _runtime(facts),
        _build_mode(facts),
        _fuse(facts),
        _overlay(facts),
        _packer(facts),
        _work_area(facts),
        *_trust(facts),
        *_scratch(facts),
        _home(facts),
        *_quota(facts),
        _slurm(facts),
        _gpu(facts),
        *_site(facts),
    )


def _runtime(facts: HostFacts) -> Finding:
    if facts.runtime is None:
        fix = "Try `module avail apptainer singularity`, or ask the administrator to install Apptainer."
        return Finding("no-runtime", Severity.ERROR, f"Runtime: {facts.runtime_error}.", fix)
    words = f"Runtime: {facts.runtime.version_text} ({facts.runtime.program})"
    if facts.runtime.needs_userns:
        words += "; root lacks capabilities here, so it runs in a user namespace"
    return Finding("runtime", Severity.OK, f"{words}.")


def build_mode(facts: HostFacts) -> str:
    """root, subuid, root-mapped, fakeroot-command or none: how an image can be built here without sudo.

    The order is that of apptainer's own choice (its documentation, "Fakeroot feature").
    """
    if facts.root and facts.full_capabilities:
        return "root"
    if facts.user_namespaces and facts.subordinate_ids and facts.id_mappers:
        return "subuid"
    if facts.user_namespaces:
        return "root-mapped"
    return "fakeroot-command" if facts.fakeroot_command else "none"


def _build_mode(facts: HostFacts) -> Finding:
    mode = build_mode(facts)
    lines = f"{_ASK} for a range in /etc/subuid and /etc/subgid (usermod --add-subuids 100000-165535 --add-subgids …)."
    if mode == "root":
        return Finding("build-root", Severity.OK, "Building: as root.")
    if mode == "subuid":
        return Finding("build-subuid", Severity.OK, "Building: --fakeroot with subordinate ids, all packages install.")
    if mode == "root-mapped":
        lacking = "newuidmap and newgidmap (package uidmap)" if not facts.id_mappers else "a range of subordinate ids"
        message = f"Building: --fakeroot in a root-mapped namespace; without {lacking} some packages will not install."
        return Finding(
            "build-root-mapped", Severity.WARNING, message, lines if facts.id_mappers else f"{_ASK} for uidmap."
        )
    if mode == "fakeroot-command":
        message = "Building: only with the fakeroot command, since this host allows no user namespaces."
        return Finding("build-fakeroot-command", Severity.WARNING, message, f"{_ASK} about user.max_user_namespaces.")
    message = "Building: not possible here, since this host allows no user namespaces and has no fakeroot command."
    fix = f"{_ASK} about user.max_user_namespaces, or build elsewhere and copy the image."
    return Finding("build-impossible", Severity.ERROR, message, fix)


def _fuse(facts: HostFacts) -> Finding:
    if facts.fuse_device and facts.fuse_mounter:
        return Finding("fuse", Severity.OK, "Mounting images: FUSE works for users.")
    if facts.root and facts.full_capabilities:
        return Finding("fuse-not-needed", Severity.OK, "Mounting images: as root, without FUSE.")
    lacking = "/dev/fuse is closed to users" if not facts.fuse_device else "squashfuse is not installed"
    fix = f"{_ASK}: mode 0666 for /dev/fuse and the packages squashfuse and fuse2fs, or a setuid runtime."
    return Finding(
        "no-fuse", Severity.WARNING, f"Mounting images: {lacking}; without a setuid runtime exec fails.", fix
    )


def _overlay(facts: HostFacts) -> Finding:
    # Linux 5.11 lets an unprivileged user mount overlayfs (kernelnewbies.org/Linux_5.11).
    if facts.kernel >= (5, 11):
        return Finding("overlay", Severity.OK, "Overlays: the kernel mounts them for users.")
    if facts.fuse_overlay:
        return Finding("overlay-fuse", Severity.OK, "Overlays: with fuse-overlayfs.")
    fix = f"{_ASK} for the package fuse-overlayfs."
    return Finding("no-overlay", Severity.WARNING, "Overlays: neither this kernel nor fuse-overlayfs mounts them.", fix)


def _packer(facts: HostFacts) -> Finding:
    if facts.packer:
        return Finding("mksquashfs", Severity.OK, "Packing images: mksquashfs is here.")
    return Finding("no-mksquashfs", Severity.WARNING, "Packing images: there is no mksquashfs on PATH.",
                   f"{_ASK} for squashfs-tools, unless the runtime brings its own.")  # fmt: skip


def _work_area(facts: HostFacts) -> Finding:
    words = f"Work area: {facts.area.path} (chosen by {facts.area.chosen_by}), {size_in_words(facts.area_free)} free"
    if facts.area_free < _ROOM_FOR_A_GPU_IMAGE:
        need = size_in_words(_ROOM_FOR_A_GPU_IMAGE)
        fix = f"Set CTK_HOME to a folder with at least {need}, for example on scratch."
        return Finding("small-work-area", Severity.WARNING, f"{words}: little for a GPU image.", fix)
    return Finding("work-area", Severity.OK, f"{words}.")


def _trust(facts: HostFacts) -> tuple[Finding, ...]:
    """Who else could change what is executed or built from the work area."""
    trust, found = facts.trust, []
    own = "Set CTK_HOME to a directory of your own, for example on scratch."
    if trust.objection is not None:
        message = f"Work area: not used, since {trust.objection}."
        found.append(Finding("work-area-not-trusted", Severity.ERROR, message, own))
    if trust.open:
        shown = ", ".join(map(str, trust.open[:3])) + (", …" if len(trust.open) > 3 else "")
        fix = command_line(["chmod", "go-w", *map(str, trust.open[:3])]) + " (the next ctk command does it for all)"
        found.append(Finding("work-area-open", Severity.WARNING, f"Work area: others can write to {shown}.", fix))
    for code, what, parent in (
        ("work-area-parent-open", "Work area", trust.open_above),
        ("scratch-open", f"Builds unpack in {facts.area.scratch}", facts.scratch_open_above),
    ):
        if parent is not None:
            message = f"{what}: everybody can rename what is in {parent}, which has no sticky bit."
            found.append(Finding(code, Severity.WARNING, message, f"{_ASK} for `chmod +t {quote(str(parent))}`."))
    return tuple(found)


def _scratch(facts: HostFacts) -> tuple[Finding, ...]:
    variable = facts.area.scratch_variable
    if variable is None:
        return ()
    words = f"Builds unpack in {facts.area.scratch} ({variable} says so), {size_in_words(facts.scratch_free)} free"
    if facts.scratch_free < _ROOM_FOR_A_GPU_IMAGE:
        fix = f"Unset {variable}, and it is done in the work area; or set it to a folder with more room."
        return (Finding("small-scratch", Severity.WARNING, f"{words}: little for a GPU image.", fix),)
    return (Finding("scratch", Severity.OK, f"{words}."),)


def _home(facts: HostFacts) -> Finding:
    if facts.home_free is None:
        return Finding("no-home", Severity.WARNING, "Home: this user has none.", "Set HOME to a folder that is yours.")
    return Finding("home", Severity.OK, f"Home: {size_in_words(facts.home_free)} free on its disk.")


def _quota(facts: HostFacts) -> tuple[Finding, ...]:
    if facts.quota is None:
        return ()
    return (Finding("quota", Severity.INFO, "Quota, as `quota -s` says: " + " | ".join(facts.quota.splitlines())),)


def _slurm(facts: HostFacts) -> Finding:
    practice = "To practise on this machine: `ctk lab up`."
    if facts.slurm is not None:
        return Finding("slurm", Severity.OK, f"Slurm: its partitions are {facts.slurm}.")
    if facts.slurm_error is not None:
        message = f"Slurm: its commands are here, but no controller answers ({facts.slurm_error})."
        return Finding("slurm-silent", Severity.WARNING, message, practice)
    return Finding("no-slurm", Severity.INFO, "Slurm: there is no sbatch on PATH.", practice)


def _gpu(facts: HostFacts) -> Finding:
    gpu = facts.gpu
    if gpu.present:
        return Finding("gpu", Severity.OK, f"GPU: {len(gpu.devices)} device(s), driver {gpu.driver}.")
    if gpu.driver is not None:
        message = f"GPU: the driver {gpu.driver} is loaded, but this process sees no device."
        return Finding("gpu-hidden", Severity.WARNING, message, "Inside a job, ask the scheduler for one (`--gpus 1`).")
    return Finding("no-gpu", Severity.INFO, "GPU: none here, as on most login nodes; images can be built all the same.")


def _site(facts: HostFacts) -> tuple[Finding, ...]:
    settings = {name: getattr(facts.site, name) for name in facts.site.__dataclass_fields__}
    return tuple(
        Finding("site-setting", Severity.INFO, f"Site: {name} is {setting.value!r}, set by {setting.origin}.")
        for name, setting in settings.items()
        if setting is not None
    )
