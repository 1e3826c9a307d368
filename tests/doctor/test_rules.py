"""What the facts about a host mean: every rule over plain values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from toolkit.doctor.facts import HostFacts, _has_range, _kernel, gather
from toolkit.doctor.rules import build_mode, judge
from toolkit.gpu.host import HostGpu
from toolkit.runtime.engine import Runtime
from toolkit.support.findings import Finding, Severity
from toolkit.support.paths import WorkArea
from toolkit.support.site import Setting, Site
from toolkit.support.trust import Trust

GOOD = HostFacts(
    runtime=Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5)),
    runtime_error=None,
    site=Site(),
    area=WorkArea(Path("/scratch/ann/ctk"), "SCRATCH"),
    area_free=500 << 30,
    scratch_free=500 << 30,
    home_free=15 << 30,
    quota=None,
    user="ann",
    root=False,
    full_capabilities=False,
    subordinate_ids=True,
    id_mappers=True,
    user_namespaces=True,
    fakeroot_command=True,
    fuse_device=True,
    fuse_mounter=True,
    fuse_overlay=True,
    packer=True,
    kernel=(6, 1),
    slurm="gpu*, cpu",
    slurm_error=None,
    gpu=HostGpu("550.54.15", ("/dev/nvidia0", "/dev/nvidia1")),
    trust=Trust(),
    scratch_open_above=None,
)


@pytest.fixture(autouse=True)
def _no_scratch_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APPTAINER_TMPDIR", "SINGULARITY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


def found(**changes: object) -> dict[str, Finding]:
    findings = judge(replace(GOOD, **changes))  # type: ignore[arg-type]
    return {finding.code: finding for finding in findings}


def test_a_good_host_has_nothing_to_mend() -> None:
    findings = found()
    assert list(findings) == [
        *("runtime", "build-subuid", "fuse", "overlay", "mksquashfs", "work-area", "home", "slurm", "gpu")
    ]
    assert {finding.severity for finding in findings.values()} == {Severity.OK}
    assert findings["runtime"].message == "Runtime: apptainer 1.4.5 (/usr/bin/apptainer)."
    assert findings["work-area"].message == "Work area: /scratch/ann/ctk (chosen by SCRATCH), 500.0 GiB free."


def test_a_tmpdir_that_is_set_is_where_builds_unpack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/local")
    assert found()["scratch"].message == "Builds unpack in /local (TMPDIR says so), 500.0 GiB free."
    small = found(scratch_free=1 << 30)["small-scratch"]
    assert small.severity is Severity.WARNING
    assert str(small.fix).startswith("Unset TMPDIR")
    exposed = found(scratch_open_above=Path("/local"))["scratch-open"]
    assert (
        exposed.message == "Builds unpack in /local: everybody can rename what is in /local, which has no sticky bit."
    )


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
        "not possible here",
    ),
    ("no-fuse", Severity.WARNING, {"fuse_device": False}, "/dev/fuse is closed to users"),
    ("no-fuse", Severity.WARNING, {"fuse_mounter": False}, "squashfuse is not installed"),
    ("fuse-not-needed", Severity.OK, {"fuse_device": False, "root": True, "full_capabilities": True}, "as root"),
    ("overlay-fuse", Severity.OK, {"kernel": (4, 18)}, "fuse-overlayfs"),
    ("no-overlay", Severity.WARNING, {"kernel": (5, 10), "fuse_overlay": False}, "neither"),
    ("no-home", Severity.WARNING, {"home_free": None}, "this user has none"),
    ("no-mksquashfs", Severity.WARNING, {"packer": False}, "no mksquashfs"),
    ("small-work-area", Severity.WARNING, {"area_free": 3 << 30}, "3.0 GiB free: little for a GPU image"),
    ("work-area-not-trusted", Severity.ERROR, {"trust": Trust("/a/uv belongs to eve")}, "since /a/uv belongs to eve."),
    ("work-area-open", Severity.WARNING, {"trust": Trust(open=(Path("/a b"),))}, "others can write to /a b."),
    ("work-area-parent-open", Severity.WARNING, {"trust": Trust(open_above=Path("/s"))}, "rename what is in /s,"),
    ("quota", Severity.INFO, {"quota": "home 18G\n of 20G"}, "home 18G |  of 20G"),
    (
        "slurm-silent",
        Severity.WARNING,
        {"slurm": None, "slurm_error": "timed out"},
        "no controller answers (timed",
    ),
    ("no-slurm", Severity.INFO, {"slurm": None}, "no sbatch on PATH"),
    ("gpu-hidden", Severity.WARNING, {"gpu": HostGpu("550.54.15", ())}, "sees no device"),
    ("no-gpu", Severity.INFO, {"gpu": HostGpu(None, ())}, "none here"),
    ("site-setting", Severity.INFO, {"site": Site(cores=Setting(4, "/etc/ctk/site.toml"))}, "cores is 4, set by /etc"),
]


@pytest.mark.parametrize(
    ("code", "severity", "changes", "words"), CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)]
)
def test_each_lack_is_named_with_a_way_out(
    code: str, severity: Severity, changes: dict[str, object], words: str
) -> None:
    finding = found(**changes)[code]
    assert finding.severity is severity
    assert words in finding.message
    assert finding.fix or severity in (Severity.OK, Severity.INFO)


def test_root_without_capabilities_is_told_so() -> None:
    runtime = Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5), needs_userns=True)
    assert "root lacks capabilities here" in found(runtime=runtime, root=True)["runtime"].message


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


# --- gathering


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("6.1.0-18-amd64", (6, 1)),
        ("4.18.0-477.el8.x86_64", (4, 18)),
        ("6.12+deb13", (6, 12)),
        ("5", (5, 0)),
        ("", (0, 0)),
    ],
)
def test_kernels(release: str, expected: tuple[int, int]) -> None:
    assert _kernel(release) == expected


def test_ranges_of_subordinate_ids(tmp_path: Path) -> None:
    path = tmp_path / "subuid"
    path.write_text("bob:100000:65536\n1002:165536:65536\nann:broken\n")
    assert _has_range(path, "bob", 1001)
    assert _has_range(path, "carol", 1002), "a line may name the number"
    assert not _has_range(path, "ann", 1003), "a broken line gives nothing"
    assert not _has_range(tmp_path / "none", "bob", 1001)


def test_this_host_can_be_looked_at() -> None:
    facts = gather(Site())
    assert facts.area_free > 0
    assert facts.kernel > (3, 0)
    assert judge(facts)


def test_a_host_without_any_program_can_be_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    facts = gather(Site())
    assert (facts.runtime, facts.slurm, facts.slurm_error, facts.quota) == (None, None, None, None)
    assert not facts.user_namespaces
    assert build_mode(facts) in ("root", "none")


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"sinfo": "echo 'slurm_load_partitions: refused' >&2; exit 1", "sbatch": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = gather(Site())
    assert (facts.slurm, facts.slurm_error) == (None, "slurm_load_partitions: refused")
