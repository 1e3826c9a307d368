"""What the facts about a host mean: every rule over plain values."""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.doctor import network, rules
from toolkit.doctor.facts import HostFacts
from toolkit.doctor.layer_trial import LayerTrial
from toolkit.doctor.reach import Answer, NetworkFacts
from toolkit.doctor.rules import build_mode, judge_host
from toolkit.doctor.trials import Disk, Trial
from toolkit.gpu.host import HostGpu
from toolkit.runtime.engine import Runtime
from toolkit.support.certificates import Bundle
from toolkit.support.findings import Finding, Severity
from toolkit.support.paths import WorkArea
from toolkit.support.site import Setting, Site
from toolkit.support.trust import Trust

if TYPE_CHECKING:
    from types import ModuleType

GOOD = HostFacts(
    runtime=Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5)),
    runtime_error=None,
    site=Site(),
    area=WorkArea(Path("/scratch/ann/ctk"), "SCRATCH"),
    area_disk=Disk(500 << 30),
    scratch_disk=Disk(500 << 30),
    tmp_disk=Disk(10 << 30),
    home=Path("/home/ann"),
    home_disk=Disk(15 << 30),
    quota=None,
    user="ann",
    root=False,
    full_capabilities=False,
    subordinate_ids=True,
    id_mappers=True,
    owners=None,
    user_namespaces=True,
    apparmor_limit=False,
    cgroups="v2",
    fakeroot_command=True,
    fuse_device=True,
    fuse_mounter=True,
    fuse_overlay=True,
    packer=True,
    kernel=(6, 1),
    slurm="gpu*, cpu",
    slurm_error=None,
    practice="`ctk lab up` starts a practice cluster on this machine.",
    gpu=HostGpu("550.54.15", ("/dev/nvidia0", "/dev/nvidia1")),
    trust=Trust(),
    scratch_open_above=None,
    trial=Trial(built=True, ran=True, layers=LayerTrial(seconds=0.034)),
    network=NetworkFacts((Answer("index", "package index", "pypi.org", 200),), Bundle(Path("/ca.pem"), "the system")),
)


@pytest.fixture(autouse=True)
def _no_scratch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


def found(**changes: object) -> dict[str, Finding]:
    findings = judge_host(replace(GOOD, **changes))  # type: ignore[arg-type]
    return {finding.code: finding for finding in findings}


def test_a_good_host_has_nothing_to_fix() -> None:
    findings = found()
    assert list(findings) == [
        *("runtime", "build-subuid", "trial", "fuse", "overlay", "mksquashfs", "layers", "work-area", "tmp"),
        *("home", "slurm", "cgroups", "host-gpu", "certificates", "index"),
    ]
    assert {finding.severity for finding in findings.values()} == {Severity.OK}
    assert findings["runtime"].message == "Runtime: apptainer 1.4.5 (/usr/bin/apptainer)."
    assert findings["work-area"].message == "Work area: /scratch/ann/ctk (chosen by SCRATCH), 500.0 GiB free."


def test_a_tmpdir_that_is_set_is_where_builds_unpack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/local")
    assert found()["scratch"].message == "Builds unpack in /local (set by TMPDIR), 500.0 GiB free."
    small = found(scratch_disk=Disk(1 << 30))["small-scratch"]
    assert small.severity is Severity.WARNING
    assert str(small.fix).startswith("Unset TMPDIR")
    exposed = found(scratch_open_above=Path("/local"))["scratch-open"]
    assert exposed.message == "Builds unpack in /local: any user can rename files in /local, which has no sticky bit."


CASES = [
    ("no-runtime", Severity.ERROR, {"runtime": None, "runtime_error": "there is none"}, "Runtime: there is none."),
    ("build-root", Severity.OK, {"root": True, "full_capabilities": True}, "as root"),
    ("build-subuid", Severity.OK, {"root": True}, "subordinate ids"),
    ("build-root-mapped", Severity.WARNING, {"subordinate_ids": False}, "without a range of subordinate ids"),
    ("build-root-mapped", Severity.WARNING, {"id_mappers": False}, "without newuidmap and newgidmap"),
    ("build-fakeroot-command", Severity.WARNING, {"user_namespaces": False}, "only with the fakeroot command"),
    (
        "build-impossible",
        Severity.ERROR,
        {"user_namespaces": False, "fakeroot_command": False},
        "not possible: this host",
    ),
    ("no-fuse", Severity.WARNING, {"fuse_device": False}, "users cannot open /dev/fuse"),
    ("no-fuse", Severity.WARNING, {"fuse_mounter": False}, "squashfuse is not installed"),
    ("fuse-not-needed", Severity.OK, {"fuse_device": False, "root": True, "full_capabilities": True}, "as root"),
    ("overlay-fuse", Severity.OK, {"kernel": (4, 18)}, "fuse-overlayfs"),
    ("no-overlay", Severity.WARNING, {"kernel": (5, 10), "fuse_overlay": False}, "neither"),
    ("layers", Severity.OK, {}, "one layer adds 34 ms to each start of a container"),
    ("no-layers", Severity.INFO, {"packer": False}, "flat images, because there is no mksquashfs on this host"),
    ("no-layers", Severity.INFO, {"owners": "no range in /etc/subuid"}, "flat images, because no range in /etc/subuid"),
    ("no-layers", Severity.INFO, {"site": Site(layers=Setting(False, "/s.toml"))}, "sets layers = false (/s.toml)"),
    (
        "layers-not-mounted",
        Severity.WARNING,
        {"trial": Trial(built=True, ran=True, layers=LayerTrial("the runtime ignores them"))},
        "not usable, the runtime ignores them. ctk builds flat images here.",
    ),
    ("no-home", Severity.WARNING, {"home": None, "home_disk": None}, "this user has no home directory"),
    ("home-missing", Severity.WARNING, {"home_disk": None}, "/home/ann is not a directory"),
    ("home-not-writable", Severity.WARNING, {"home_disk": Disk(9, "/h: Read-only file system")}, "/h: Read-only"),
    ("no-mksquashfs", Severity.WARNING, {"packer": False}, "no mksquashfs"),
    (
        "small-work-area",
        Severity.WARNING,
        {"area_disk": Disk(3 << 30)},
        "only 3.0 GiB free, which may not be enough for a GPU image",
    ),
    ("work-area-not-writable", Severity.ERROR, {"area_disk": Disk(1 << 40, "/x: Permission denied")}, "(/x: Perm"),
    ("work-area-noexec", Severity.WARNING, {"area_disk": Disk(1 << 40, noexec=True)}, "mounted with noexec"),
    ("small-tmp", Severity.WARNING, {"tmp_disk": Disk(64 << 20)}, "64.0 MiB free"),
    ("tmp-noexec", Severity.WARNING, {"tmp_disk": Disk(1 << 40, noexec=True)}, "mounted with noexec"),
    ("tmp-not-writable", Severity.WARNING, {"tmp_disk": Disk(1 << 40, "/tmp: No")}, "(/tmp: No)"),
    ("trial-skipped", Severity.INFO, {"trial": None}, "the work area is not usable"),
    ("trial-skipped", Severity.INFO, {"trial": None, "runtime": None}, "there is no runtime"),
    (
        "trial-build-failed",
        Severity.ERROR,
        {"trial": Trial(built=False, ran=False, lines=("FATAL: no mapping entry in /etc/subuid",))},
        "building a small image fails: this user has no subordinate IDs",
    ),
    (
        "trial-run-failed",
        Severity.ERROR,
        {"trial": Trial(built=True, ran=False, lines=("", "FATAL: something new"))},
        "running a small image fails: the runtime reports: FATAL: something new.",
    ),
    (
        "apparmor-userns",
        Severity.WARNING,
        {"apparmor_limit": True, "user_namespaces": False, "trial": None},
        "also for the runtime",
    ),
    ("apparmor-userns-allowed", Severity.OK, {"apparmor_limit": True, "user_namespaces": False}, "a profile allows"),
    ("build-subuid", Severity.OK, {"apparmor_limit": True, "user_namespaces": False}, "subordinate ids"),
    ("cgroups-old", Severity.INFO, {"cgroups": "v1"}, "version 1"),
    ("no-cgroups", Severity.INFO, {"cgroups": None}, "none"),
    (
        "work-area-not-trusted",
        Severity.ERROR,
        {"trust": Trust("/a/uv belongs to eve")},
        "because /a/uv belongs to eve.",
    ),
    ("work-area-open", Severity.WARNING, {"trust": Trust(open=(Path("/a b"),))}, "others can write to /a b."),
    ("work-area-parent-open", Severity.WARNING, {"trust": Trust(open_above=Path("/s"))}, "rename files in /s,"),
    ("quota", Severity.INFO, {"quota": "home 18G\n of 20G"}, "home 18G |  of 20G"),
    (
        "slurm-silent",
        Severity.WARNING,
        {"slurm": None, "slurm_error": "timed out"},
        "no controller responds (timed",
    ),
    ("no-slurm", Severity.INFO, {"slurm": None}, "no sbatch on PATH"),
    ("gpu-hidden", Severity.WARNING, {"gpu": HostGpu("550.54.15", ())}, "sees no device"),
    ("no-gpu", Severity.INFO, {"gpu": HostGpu(None, ())}, "none on this host"),
    ("site-setting", Severity.INFO, {"site": Site(cores=Setting(4, "/etc/ctk/site.toml"))}, "cores is 4, set by /etc"),
]


@pytest.mark.parametrize(
    ("code", "severity", "changes", "words"), CASES, ids=[f"{case[0]}-{number}" for number, case in enumerate(CASES)]
)
def test_each_missing_prerequisite_has_a_fix(
    code: str, severity: Severity, changes: dict[str, object], words: str
) -> None:
    finding = found(**changes)[code]
    assert finding.severity is severity
    assert words in finding.message
    assert finding.fix or severity in (Severity.OK, Severity.INFO)


def test_root_without_capabilities_is_reported() -> None:
    runtime = Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5), needs_userns=True)
    assert "root lacks capabilities on this host" in found(runtime=runtime, root=True)["runtime"].message


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({"root": True, "full_capabilities": True}, "root"),
        ({}, "subuid"),
        ({"subordinate_ids": False}, "root-mapped"),
        ({"id_mappers": False}, "root-mapped"),
        ({"user_namespaces": False}, "fakeroot-command"),
        ({"user_namespaces": False, "fakeroot_command": False}, "none"),
    ],
)
def test_build_modes(changes: dict[str, object], mode: str) -> None:
    assert build_mode(replace(GOOD, **changes)) == mode  # type: ignore[arg-type]


def test_an_unusable_scratch_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/local")
    refused = found(scratch_disk=Disk(1 << 40, "/local: Permission denied"))["scratch-not-writable"]
    assert refused.severity is Severity.ERROR
    assert str(refused.fix).startswith("Unset TMPDIR")
    assert found(scratch_disk=Disk(1 << 40, noexec=True))["scratch-noexec"].fix == "Unset TMPDIR."


# --- gathering


@pytest.mark.parametrize(
    ("module", "listed", "facts"),
    [(rules, rules.RULES, "HostFacts"), (network, network.NETWORK_RULES, "NetworkFacts")],
)
def test_every_rule_is_listed_once(module: ModuleType, listed: tuple[object, ...], facts: str) -> None:
    signature = {"facts": facts, "return": "Iterator[Finding]"}
    functions = [value for value in vars(module).values() if inspect.isfunction(value)]
    assert {function for function in functions if function.__annotations__ == signature} <= set(listed)
    assert len(set(listed)) == len(listed)
