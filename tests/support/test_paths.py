"""Where ctk keeps its files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.paths import WorkArea, home, state_directory, user_path, work_area
from toolkit.support.site import Setting, Site


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("CTK_HOME", "SCRATCH", "APPTAINER_CACHEDIR", "APPTAINER_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_the_work_area_follows_the_order_of_precedence(tmp_path: Path, bare: pytest.MonkeyPatch) -> None:
    bare.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert work_area(Site()) == WorkArea(tmp_path / "xdg" / "ctk", "the XDG cache directory")
    bare.setenv("SCRATCH", str(tmp_path / "missing"))
    assert work_area(Site()).chosen_by == "the XDG cache directory", "a $SCRATCH that is not there chooses nothing"
    bare.setenv("SCRATCH", str(tmp_path))
    assert work_area(Site()) == WorkArea(tmp_path / "ctk", "SCRATCH")
    bare.setenv("USER", "ann")
    site = Site(work_area=Setting("/work/$USER/ctk", "/etc/ctk/site.toml"))
    assert work_area(site) == WorkArea(Path("/work/ann/ctk"), "/etc/ctk/site.toml")
    bare.setenv("CTK_HOME", str(tmp_path / "mine"))
    assert work_area(site) == WorkArea(tmp_path / "mine", "CTK_HOME")


@pytest.mark.parametrize("text", ["", "rel/ctk", "/x/$NO_SUCH_VARIABLE/ctk"])
def test_a_site_s_work_area_that_is_no_absolute_path_is_refused(bare: pytest.MonkeyPatch, text: str) -> None:
    bare.delenv("NO_SUCH_VARIABLE", raising=False)
    with pytest.raises(WrongInput, match=r"/etc/ctk/site.toml: work_area: .* does not expand to an absolute path"):
        work_area(Site(work_area=Setting(text, "/etc/ctk/site.toml")))


def test_a_work_area_that_became_read_only_is_missing_on_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    area = WorkArea(tmp_path / "area", "CTK_HOME")
    area.create()
    monkeypatch.setattr(os, "access", lambda path, _mode: path != area.path / "tmp")
    with pytest.raises(MissingOnHost, match=r"is not writable: Permission denied"):
        area.create()


@pytest.mark.parametrize("character", [":", ",", "'", "\n", "\x1b", "\udcff"])
def test_a_work_area_that_cannot_be_bound_is_refused(bare: pytest.MonkeyPatch, character: str) -> None:
    bare.setenv("CTK_HOME", f"/work/a{character}b c")
    with pytest.raises(WrongInput, match="cannot use such a path") as error:
        work_area(Site())
    assert error.value.code == "work-area-name"
    assert ("the byte 0xff" if character == "\udcff" else repr(character)) in error.value.message
    assert error.value.message.isprintable()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("file", "file (chosen by CTK_HOME) is a file, not a directory"),
        ("file/x/y", "file/x/y (chosen by CTK_HOME) cannot be created: {}/file is a file, not a directory"),
        ("link", "link (chosen by CTK_HOME) is a symlink to {}/none, which does not exist"),
    ],
)
def test_work_area_in_whose_place_there_is_a_file_is_refused(
    tmp_path: Path, bare: pytest.MonkeyPatch, name: str, said: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("none")
    bare.setenv("CTK_HOME", str(tmp_path / name))
    with pytest.raises(WrongInput, match=re.escape(said.format(tmp_path))):
        work_area(Site())


@pytest.mark.parametrize("name", ["there", "link", "there/not/yet", "closed/x"])
def test_work_area_that_is_or_can_be_a_directory_is_used(tmp_path: Path, bare: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    (tmp_path / "closed").mkdir(mode=0)
    bare.setenv("CTK_HOME", str(tmp_path / name))
    assert work_area(Site()).path == tmp_path / name


def test_a_work_area_that_cannot_be_created_is_missing_on_host(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MissingOnHost, match="chosen by CTK_HOME") as caught:
        WorkArea(tmp_path / "file" / "x", "CTK_HOME").create()
    assert "CTK_HOME" in (caught.value.fix or "")


def test_a_work_area_that_became_read_only_is_told_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    area = WorkArea(tmp_path / "area", "CTK_HOME")
    area.create()
    area.create()
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path).name != "tmp")
    with pytest.raises(MissingOnHost, match=r"chosen by CTK_HOME\) is not writable: Permission denied") as caught:
        area.create()
    assert caught.value.code == "work-area-not-writable"
    assert "Set CTK_HOME to a writable directory" in (caught.value.fix or "")


def test_the_home_of_an_unknown_user_is_refused() -> None:
    with pytest.raises(WrongInput, match="no such user"):
        user_path("~no-such-user-here/x")
    assert user_path("~/x") == Path.home() / "x"


def test_a_user_without_a_home_gets_a_fix(bare: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        bare.delenv(name, raising=False)
    bare.setattr("pwd.getpwuid", lambda number: {}[number])
    assert home() is None
    with pytest.raises(MissingOnHost, match="no home") as caught:
        work_area(Site())
    assert "CTK_HOME" in (caught.value.fix or "")
    with pytest.raises(MissingOnHost, match="no home") as caught:
        state_directory()
    assert "XDG_STATE_HOME" in (caught.value.fix or "")
    bare.setattr("platformdirs.user_state_dir", lambda *_, **__: "~/.local/state/ctk")
    with pytest.raises(MissingOnHost, match="no home"):
        state_directory()
