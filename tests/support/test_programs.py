"""Programs outside of PATH."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.support import programs
from toolkit.support.programs import find_program

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_program_is_found_on_path_then_in_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name in (("bin", "one"), ("sbin", "one"), ("sbin", "two")):
        (tmp_path / where).mkdir(exist_ok=True)
        (tmp_path / where / name).write_text("#!/bin/sh\n")
        (tmp_path / where / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(programs, "_MORE_PLACES", (str(tmp_path / "sbin"),))
    assert find_program("one") == str(tmp_path / "bin/one")
    assert find_program("two") == str(tmp_path / "sbin/two")
    assert find_program("none", "two") == str(tmp_path / "sbin/two")
    assert find_program("none") is None
