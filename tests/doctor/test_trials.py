"""What is tried on this host instead of assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.doctor.trials import try_disk, try_runtime
from toolkit.runtime.engine import Runtime

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_trial_of_a_disk_leaves_nothing(tmp_path: Path) -> None:
    assert try_disk(tmp_path / "to/be/made").problem is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    assert try_disk(tmp_path / "file").problem == f"{tmp_path}/file: Not a directory"


def test_runtime_is_tried_without_options_of_the_users_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They say nothing about this host, and a result may be kept."""
    for name in ("APPTAINER_UNSQUASH", "SINGULARITY_COMPAT", "APPTAINER_BIND", "APPTAINER_TMPDIR"):
        monkeypatch.setenv(name, "/of/the/shell")
    program, seen = tmp_path / "apptainer", tmp_path / "seen"
    program.write_text(f"#!/bin/sh\nenv > {seen}\nexit 1\n")
    program.chmod(0o755)
    trial = try_runtime(Runtime(program, "apptainer", (1, 4, 5)), tmp_path)
    assert trial is not None
    assert not trial.built
    variables = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    assert not {"APPTAINER_UNSQUASH", "SINGULARITY_COMPAT"} & set(variables)
    assert variables["APPTAINER_BIND"] == "/of/the/shell"
    assert variables["APPTAINER_TMPDIR"].startswith(str(tmp_path))
