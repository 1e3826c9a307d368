"""What killed builds left in /tmp is removed; what is in use, or another user's, is not."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.pins.locks import SMALL
from toolkit.builds.leftovers import sweep_temporary
from toolkit.pins.guard.script import guarded

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def guard(directory: Path, name: str) -> Path:
    path = directory / f"ctk-guard.{name}"
    path.mkdir(mode=0o700)
    (path / "guard.py").touch()
    return path


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_what_no_process_has_open_is_removed(tmp_path: Path) -> None:
    guard(tmp_path, "AbCd12")
    (tmp_path / "ctk-ab_12345.pem").touch(mode=0o600)
    used = guard(tmp_path, "inUse1")
    with subprocess.Popen(["sh", "-c", 'exec 9<"$0"; echo open; read -r _', used], stdin=-1, stdout=-1) as program:
        assert program.stdout is not None
        program.stdout.readline()
        sweep_temporary([tmp_path])
        assert names(tmp_path) == [used.name]
        program.communicate()
    sweep_temporary([tmp_path, tmp_path / "missing"])
    assert names(tmp_path) == []


def test_symlinks_other_names_and_open_modes_stay(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tmp_path / "ctk-guard.linked").symlink_to(kept)
    guard(tmp_path, "public").chmod(0o755)
    for name in ("ctk-guard.toolong", "ctk-new.AbCd12", "ctk-images"):
        (tmp_path / name).mkdir(mode=0o700)
    os.mkfifo(tmp_path / "ctk-guard.a_fifo", mode=0o600)
    before = names(tmp_path)
    sweep_temporary([tmp_path])
    assert names(tmp_path) == before
    assert names(kept) == ["file"]


def test_files_of_another_user_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard(tmp_path, "theirs")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    sweep_temporary([tmp_path])
    assert names(tmp_path) == ["ctk-guard.theirs"]


def test_the_directory_of_a_killed_guard_is_removed_and_that_of_a_running_one_stays(tmp_path: Path) -> None:
    begin = guarded(SMALL, "").partition("\ncat >")[0]
    argv = ["sh", "-ec", f"{begin}\necho $ctk_guard; read -r _"]
    with subprocess.Popen(argv, env={**os.environ, "TMPDIR": str(tmp_path)}, stdin=-1, stdout=-1, text=True) as shell:
        assert shell.stdout is not None
        place = shell.stdout.readline().strip()
        assert place.startswith(f"{tmp_path}/ctk-guard.")
        sweep_temporary([tmp_path])
        assert [str(path) for path in tmp_path.iterdir()] == [place]
        shell.kill()
    sweep_temporary([tmp_path])
    assert names(tmp_path) == []
