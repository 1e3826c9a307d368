"""The work area of a command: made private, and said once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.cli.area import open_work_area
from toolkit.support.errors import WrongInput
from toolkit.support.site import Site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("count", "shown"), [(1, "{0}"), (3, "{0}, {1}, {2}"), (5, "{0}, {1}, {2} and 2 more")])
def test_what_others_could_write_is_closed_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int, shown: str
) -> None:
    area = tmp_path / "area"
    monkeypatch.setenv("CTK_HOME", str(area))
    directories = [area / "cache" / f"d{number}" for number in range(count)]
    for directory in directories:
        directory.mkdir(parents=True)
        directory.chmod(0o777)
    area.chmod(0o755)
    (area / "cache").chmod(0o755)
    assert open_work_area(Site()).path == area
    assert {directory.stat().st_mode & 0o022 for directory in directories} == {0}
    said = capsys.readouterr()
    assert said.out == ""
    assert f"others could write to {shown.format(*directories)}; ctk removed that permission" in said.err
    open_work_area(Site())
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("umask", [0o777, 0o400])
def test_umask_that_takes_the_user_s_own_permissions_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setenv("CTK_HOME", str(tmp_path / "area"))
    before = os.umask(umask)
    try:
        with pytest.raises(WrongInput, match=f"the umask {umask:04o}") as caught:
            open_work_area(Site())
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert caught.value.code == "umask"
    assert not (tmp_path / "area").exists()
    open_work_area(Site())
