"""How uv is called: what it leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.pins.uv import Uv

if TYPE_CHECKING:
    from pathlib import Path


def test_lock_files_of_uv_go_with_its_call(tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\n: > "$TMPDIR/uv-setuptools-1.lock"\necho "$TMPDIR"\n')
    program.chmod(0o755)
    uv = Uv(str(program), tmp_path / "cache", tmp_path / "area/tmp")
    answer = uv.call(["pip", "compile"], tmp_path / "area")
    assert answer.stdout.startswith(str(tmp_path / "area/tmp/uv-"))
    assert not list((tmp_path / "area/tmp").iterdir())
