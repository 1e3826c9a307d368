"""Facts of this host: the kernel, subordinate ids, programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.doctor.facts import _has_range, _kernel, gather_host_facts
from toolkit.doctor.rules import build_mode, judge_host
from toolkit.support.site import Site

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


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


def test_facts_of_this_host() -> None:
    facts = gather_host_facts(Site(), offline=True)
    assert facts.area_disk.free > 0
    assert facts.kernel > (3, 0)
    assert judge_host(facts)


def test_facts_of_a_host_without_any_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    facts = gather_host_facts(Site(), offline=True)
    assert (facts.runtime, facts.slurm, facts.slurm_error, facts.quota) == (None, None, None, None)
    assert not facts.user_namespaces
    assert build_mode(facts) in ("root", "none")


def test_a_scheduler_that_prints_without_an_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"sinfo": "yes gpu | head -c 30000000", "sbatch": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr("toolkit.support.processes._MAX_OUTPUT", 1 << 20)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = gather_host_facts(Site(), offline=True)
    assert (facts.slurm, facts.slurm_error) == (None, "sinfo printed more than 1 MiB")


def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"sinfo": "echo 'slurm_load_partitions: refused' >&2; exit 1", "sbatch": ""}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    facts = gather_host_facts(Site(), offline=True)
    assert (facts.slurm, facts.slurm_error) == (None, "slurm_load_partitions: refused")
