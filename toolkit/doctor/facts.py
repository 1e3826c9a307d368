"""Gather the facts about this host. `toolkit.doctor.rules` judges them."""

from __future__ import annotations

import getpass
import os
import platform
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.doctor.layer_trial import keep_trial, kept_file
from toolkit.doctor.reach import NetworkFacts, ask_network
from toolkit.doctor.trials import Disk, Trial, try_disk, try_runtime
from toolkit.gpu.host import HostGpu, host_gpu
from toolkit.lab.registry import advice as lab_advice
from toolkit.runtime.area import scratch_of, scratch_variable
from toolkit.runtime.engine import find_runtime
from toolkit.scheduler.environment import clean_environment
from toolkit.scheduler.values import is_name
from toolkit.support.errors import CtkError
from toolkit.support.namespace import lacks_capabilities, owner_problem
from toolkit.support.overlay import MOUNTERS
from toolkit.support.paths import home, work_area
from toolkit.support.processes import run, run_contained
from toolkit.support.programs import find_program
from toolkit.support.text import shorten
from toolkit.support.trust import Trust, examine, open_above

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.runtime.engine import Runtime
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

_TIMEOUT = 10.0  # seconds; a scheduler or a file server that is down must not block the command


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts about one host. `kernel` is (major, minor); what is absent is None.

    `owners` says why files cannot keep their owners in a layer.
    `home_disk` is None if there is no such directory; `trial` is None if the runtime could not be tried.
    """

    runtime: Runtime | None
    runtime_error: str | None
    site: Site
    area: WorkArea
    area_disk: Disk
    scratch_disk: Disk
    tmp_disk: Disk
    home: Path | None
    home_disk: Disk | None
    quota: str | None
    user: str
    root: bool
    full_capabilities: bool
    subordinate_ids: bool
    id_mappers: bool
    owners: str | None
    user_namespaces: bool
    apparmor_limit: bool
    cgroups: str | None
    fakeroot_command: bool
    fuse_device: bool
    fuse_mounter: bool
    fuse_overlay: bool
    packer: bool
    kernel: tuple[int, int]
    slurm: str | None
    slurm_error: str | None
    practice: str
    gpu: HostGpu
    trust: Trust
    scratch_open_above: Path | None
    trial: Trial | None
    network: NetworkFacts


def gather_host_facts(
    site: Site, *, offline: bool = False, on_step: Callable[[str], None] = lambda _step: None
) -> HostFacts:
    """Examine this host, and run the trials. Takes two seconds at most if its programs respond.

    With `offline` no server is queried. Files written for a trial are removed.
    """
    network = ask_network(offline=offline)
    runtime, runtime_error = _runtime(site)
    area = work_area(site)
    on_step("querying the scheduler")
    slurm, slurm_error = _slurm()
    user = _user()
    on_step("testing the disks")
    area_disk, scratch_disk, trust = try_disk(area.path), try_disk(scratch_of(area)), examine(area.path)
    trial = None
    if runtime is not None and area_disk.problem is None and trust.objection is None:
        on_step("building and running a small image")
        trial = try_runtime(runtime, area.path)
        if trial is not None and trial.layers is not None and kept_file(area.path).is_file():
            keep_trial(area.path, runtime, trial.layers)
    directory = home()
    on_step("waiting for the package index and the registries")
    return HostFacts(
        runtime=runtime,
        runtime_error=runtime_error,
        site=site,
        area=area,
        area_disk=area_disk,
        scratch_disk=scratch_disk,
        tmp_disk=try_disk(Path("/tmp")),  # noqa: S108 - the directory itself is what every container shows
        home=directory,
        home_disk=None if directory is None or not os.path.isdir(directory) else try_disk(directory),  # noqa: PTH112 - closed
        quota=_quota(),
        user=user,
        root=os.geteuid() == 0,
        full_capabilities=not lacks_capabilities(),
        subordinate_ids=all(_has_range(Path(f"/etc/{name}"), user, os.getuid()) for name in ("subuid", "subgid")),
        id_mappers=all(shutil.which(name) for name in ("newuidmap", "newgidmap")),
        owners=owner_problem(),
        user_namespaces=_succeeds(["unshare", "--user", "--map-root-user", "true"]),
        apparmor_limit=_is_one(Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")),
        cgroups=_cgroups(Path("/sys/fs/cgroup")),
        fakeroot_command=shutil.which("fakeroot") is not None,
        fuse_device=os.access("/dev/fuse", os.R_OK | os.W_OK),
        fuse_mounter=find_program(*MOUNTERS) is not None,
        fuse_overlay=shutil.which("fuse-overlayfs") is not None,
        packer=find_program("mksquashfs") is not None,
        kernel=_kernel(platform.release()),
        slurm=slurm,
        slurm_error=slurm_error,
        practice=lab_advice(),
        gpu=host_gpu(),
        trust=trust,
        scratch_open_above=open_above(scratch_of(area) / "build") if scratch_variable() else None,
        trial=trial,
        network=network(),
    )


def _runtime(site: Site) -> tuple[Runtime | None, str | None]:
    try:
        return find_runtime(site), None
    except CtkError as error:
        return None, error.message


def _slurm() -> tuple[str | None, str | None]:
    """The partitions that sinfo lists, or the reason for its failure; (None, None) if there is no client."""
    if shutil.which("sinfo") is None or shutil.which("sbatch") is None:
        return None, None
    try:
        done = run_contained(["sinfo", "--noheader", "--format=%P"], env=clean_environment(), timeout=_TIMEOUT)
    except CtkError as error:
        return None, error.message
    if not done.ok:
        return None, shorten((done.stderr.strip().splitlines() or ["sinfo failed"])[0])
    return shorten(", ".join(filter(is_name, done.stdout.split()))), None


def _quota() -> str | None:
    if shutil.which("quota") is None:
        return None
    try:
        return run(["quota", "-s"], timeout=_TIMEOUT).stdout.strip() or None
    except CtkError:
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an id without an entry in passwd, as in a batch container
        return str(os.getuid())


def _has_range(path: Path, user: str, uid: int) -> bool:
    """Whether subuid(5) or subgid(5) gives this user a range: `name-or-uid:start:count`."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return False
    return any(line.split(":")[0] in (user, str(uid)) for line in lines if line.count(":") == 2)


def _is_one(path: Path) -> bool:
    """Whether a kernel setting is 1; a missing one is off."""
    try:
        return path.read_text().strip() == "1"
    except OSError:
        return False


def _cgroups(root: Path) -> str | None:
    """v2 or v1 (cgroups(7)); None if there are none."""
    if (root / "cgroup.controllers").is_file():
        return "v2"
    return "v1" if (root / "memory").is_dir() else None


def _succeeds(argv: list[str]) -> bool:
    try:
        return run(argv, timeout=_TIMEOUT).ok
    except CtkError:
        return False


def _kernel(release: str) -> tuple[int, int]:
    """(6, 1) from `6.1.0-18-amd64`; (0, 0) if that is not a version."""
    match = re.match(r"(\d+)(?:\.(\d+))?", release)
    return (int(match[1]), int(match[2] or 0)) if match else (0, 0)
