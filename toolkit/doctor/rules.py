"""What the facts about a host mean for a person who wants to build and run images there."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from toolkit.doctor.network import judge_network
from toolkit.runtime.area import scratch_of, scratch_variable
from toolkit.runtime.complaints import explain
from toolkit.support.files import size_in_words
from toolkit.support.findings import Finding, Severity
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from toolkit.doctor.facts import HostFacts
    from toolkit.doctor.trials import Disk

_ROOM_FOR_A_GPU_IMAGE = 20 << 30  # octets: 3 to 8 GB of image, its unpacked tree, and the downloaded layers
_ROOM_IN_TMP = 1 << 30  # bytes; a framework's compiled kernels and a data loader's shared files
_ASK = "Ask the administrator"


def judge(facts: HostFacts) -> tuple[Finding, ...]:
    """All findings, in the order in which a person needs the things."""
    return (
        _runtime(facts),
        _build_mode(facts),
        *_apparmor(facts),
        _trial(facts),
        _fuse(facts),
        _overlay(facts),
        _packer(facts),
        *_work_area(facts),
        *_trust(facts),
        *_scratch(facts),
        _tmp(facts),
        _home(facts),
        *_quota(facts),
        _slurm(facts),
        _cgroups(facts),
        _gpu(facts),
        *judge_network(facts.network),
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
    # A profile of AppArmor may let the runtime do what it forbids to `unshare`.
    namespaces = facts.user_namespaces or (facts.apparmor_limit and facts.trial is not None and facts.trial.built)
    if namespaces and facts.subordinate_ids and facts.id_mappers:
        return "subuid"
    if namespaces:
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


def _apparmor(facts: HostFacts) -> tuple[Finding, ...]:
    """Ubuntu 24.04 lets only programs with a profile make user namespaces (its release notes)."""
    if not facts.apparmor_limit or facts.root or facts.user_namespaces:
        return ()
    what = "AppArmor: user namespaces are restricted (kernel.apparmor_restrict_unprivileged_userns=1)"
    if facts.trial is not None and facts.trial.built and facts.trial.ran:
        return (Finding("apparmor-userns-allowed", Severity.OK, f"{what}, and a profile allows them to the runtime."),)
    fix = f"{_ASK} for an AppArmor profile of the runtime, which Apptainer's own packages for Ubuntu install."
    return (Finding("apparmor-userns", Severity.WARNING, f"{what}, for the runtime as well.", fix),)


def _trial(facts: HostFacts) -> Finding:
    trial = facts.trial
    if trial is None:
        no_place = "the work area cannot be used, or /usr/bin/true cannot be bound into a container"
        reason = "there is no runtime" if facts.runtime is None else no_place
        return Finding("trial-skipped", Severity.INFO, f"Trial: no image was built and run, since {reason}.")
    if trial.built and trial.ran:
        return Finding("trial", Severity.OK, "Trial: a small image was built and run.")
    known = explain(trial.lines, namespaces_left=None if facts.user_namespaces else False)
    last = next((line for line in reversed(trial.lines) if line.strip()), "no message")
    code, what = ("trial-run-failed", "running") if trial.built else ("trial-build-failed", "building")
    reason = known.meaning if known else f"the runtime reports: {last.strip()}"
    fix = known.fix if known else f"{_ASK}, with the output of `ctk doctor --report ticket.txt`."
    return Finding(code, Severity.ERROR, f"Trial: {what} a small image fails: {reason}.", fix)


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


def _work_area(facts: HostFacts) -> tuple[Finding, ...]:
    disk = facts.area_disk
    words = f"Work area: {facts.area.path} (chosen by {facts.area.chosen_by})"
    if disk.problem is not None:
        fix = "Set CTK_HOME to a directory that you can write to, for example on scratch."
        return (Finding("work-area-not-writable", Severity.ERROR, f"{words} is not writable ({disk.problem}).", fix),)
    return (
        _room(("work-area", "small-work-area"), words, disk, "Set CTK_HOME to a directory with"),
        *_noexec("work-area-noexec", words, disk, "Set CTK_HOME to a directory on another disk."),
    )


def _room(codes: tuple[str, str], words: str, disk: Disk, fix: str) -> Finding:
    free = f"{words}, {size_in_words(disk.free)} free"
    if disk.free >= _ROOM_FOR_A_GPU_IMAGE:
        return Finding(codes[0], Severity.OK, f"{free}.")
    need = size_in_words(_ROOM_FOR_A_GPU_IMAGE)
    return Finding(codes[1], Severity.WARNING, f"{free}: little for a GPU image.", f"{fix} at least {need}.")


def _noexec(code: str, words: str, disk: Disk, fix: str) -> tuple[Finding, ...]:
    """A build runs programs in what it unpacks; mount(8), `noexec`."""
    if not disk.noexec:
        return ()
    return (Finding(code, Severity.WARNING, f"{words}: the disk is mounted with noexec, so builds fail there.", fix),)


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
        ("scratch-open", f"Builds unpack in {scratch_of(facts.area)}", facts.scratch_open_above),
    ):
        if parent is not None:
            message = f"{what}: everybody can rename what is in {parent}, which has no sticky bit."
            found.append(Finding(code, Severity.WARNING, message, f"{_ASK} for `chmod +t {quote(str(parent))}`."))
    return tuple(found)


def _scratch(facts: HostFacts) -> tuple[Finding, ...]:
    variable, disk = scratch_variable(), facts.scratch_disk
    if variable is None:
        return ()
    words = f"Builds unpack in {scratch_of(facts.area)} (set by {variable})"
    if disk.problem is not None:
        fix = f"Unset {variable} to build in the work area, or set it to a directory that you can write to."
        return (Finding("scratch-not-writable", Severity.ERROR, f"{words}, not writable ({disk.problem}).", fix),)
    fix = f"Unset {variable} to build in the work area, or set it to a directory with"
    return (
        _room(("scratch", "small-scratch"), words, disk, fix),
        *_noexec("scratch-noexec", words, disk, f"Unset {variable}."),
    )


def _tmp(facts: HostFacts) -> Finding:
    """Containers show the /tmp of their host (apptainer.conf: mount tmp)."""
    disk = facts.tmp_disk
    words = f"Temporary files (/tmp): {size_in_words(disk.free)} free"
    if disk.problem is not None:
        message = f"Temporary files: not writable ({disk.problem})."
        return Finding("tmp-not-writable", Severity.WARNING, message, f"{_ASK} for a /tmp with mode 1777.")
    if disk.free < _ROOM_IN_TMP:
        fix = 'Remove your own files from /tmp (`find /tmp -user "$USER"`).'
        return Finding("small-tmp", Severity.WARNING, f"{words}: little for the programs in a container.", fix)
    if disk.noexec:
        message = f"{words}, mounted with noexec: programs that compile at run time, as Triton does, fail there."
        return Finding("tmp-noexec", Severity.WARNING, message, "In jobs, set TMPDIR to another disk.")
    return Finding("tmp", Severity.OK, f"{words}.")


def _home(facts: HostFacts) -> Finding:
    fix = "Set HOME to a directory of your own."
    if facts.home is None:
        return Finding("no-home", Severity.WARNING, "Home: this user has none.", fix)
    if facts.home_disk is None:
        return Finding("home-missing", Severity.WARNING, f"Home: {facts.home} is not a directory here.", fix)
    if facts.home_disk.problem is not None:
        message = f"Home: not writable ({facts.home_disk.problem}); programs fail to keep their settings and caches."
        return Finding("home-not-writable", Severity.WARNING, message, fix)
    return Finding("home", Severity.OK, f"Home: writable, {size_in_words(facts.home_disk.free)} free on its disk.")


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


def _cgroups(facts: HostFacts) -> Finding:
    if facts.cgroups == "v2":
        return Finding("cgroups", Severity.OK, "Cgroups: version 2.")
    found = "version 1" if facts.cgroups else "none"
    message = f"Cgroups: {found}; the scheduler may limit memory, `apptainer exec --memory` cannot without root."
    return Finding("cgroups-old" if facts.cgroups else "no-cgroups", Severity.INFO, message)


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
