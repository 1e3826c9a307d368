"""A work area is used only if no other user owns or can write to its files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.support import trust
from toolkit.support.errors import MissingOnHost
from toolkit.support.paths import WorkArea
from toolkit.support.trust import examine, secure

STRANGER = 4242


def make(root: Path, *names: str, mode: int = 0o755) -> None:
    for path in (root, *(root / name for name in names)):
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[Path, int]:
    """Paths that appear to belong to another user, so that the tests need no root."""
    said: dict[Path, int] = {}
    real = Path.lstat

    def lstat(path: Path) -> os.stat_result:
        fields = list(real(path))
        fields[4] = said.get(path, fields[4])
        return os.stat_result(fields)

    monkeypatch.setattr(Path, "lstat", lstat)
    return said


def test_an_area_that_is_not_there_yet_is_used(tmp_path: Path) -> None:
    assert secure(WorkArea(tmp_path / "none" / "ctk", "CTK_HOME")) == ()
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["", "uv", "uv/uv", "bases/1.sif", "cache/locks/1", "cache/digests", "tmp", "spython"])
def test_a_file_of_another_user_is_refused_by_name(tmp_path: Path, owners: dict[Path, int], name: str) -> None:
    make(tmp_path / "a", name)
    make(tmp_path / "a", "bases", mode=0o777)
    owners[tmp_path / "a" / name] = STRANGER
    with pytest.raises(MissingOnHost, match=f"{tmp_path}/a/?{name} belongs to user {STRANGER}") as refused:
        secure(WorkArea(tmp_path / "a", "SCRATCH"))
    assert (refused.value.exit_status, refused.value.code) == (3, "work-area-not-trusted")
    assert "(chosen by SCRATCH)" in refused.value.message
    assert (tmp_path / "a" / "bases").stat().st_mode & 0o777 == 0o777, "nothing is changed where it is not trusted"


def test_an_open_directory_is_looked_through_to_the_bottom(tmp_path: Path, owners: dict[Path, int]) -> None:
    deep = "cache/uv/archive-v0/hash/package/module"
    make(tmp_path, *(str(path) for path in reversed([Path(deep), *Path(deep).parents][:-1])), mode=0o777)
    owners[tmp_path / deep] = STRANGER
    assert f"{deep} belongs to" in str(examine(tmp_path).objection)


@pytest.mark.parametrize("name", ["mine", "tmp/.ctk-work-host-1/rootfs"])
def test_unused_files_may_belong_to_any_user(tmp_path: Path, owners: dict[Path, int], name: str) -> None:
    """CTK_HOME may be a directory with other things in it; a crashed build leaves files of subordinate ids."""
    make(tmp_path, name, mode=0o777)
    owners[tmp_path / name] = STRANGER
    (tmp_path / name).chmod(0o777)
    assert examine(tmp_path).objection is None
    secure(WorkArea(tmp_path, "CTK_HOME"))
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o777


def test_a_symlink_must_be_trusted_too(tmp_path: Path, owners: dict[Path, int]) -> None:
    make(tmp_path / "there")
    (tmp_path / "link").symlink_to("there")
    assert examine(tmp_path / "link").objection is None
    owners[tmp_path / "link"] = STRANGER
    assert "link belongs to" in str(examine(tmp_path / "link").objection)


def test_loops_of_links_end(tmp_path: Path) -> None:
    make(tmp_path, "cache", mode=0o777)
    (tmp_path / "cache" / "up").symlink_to("..")
    (tmp_path / "cache" / "self").symlink_to("self")
    assert examine(tmp_path).objection is None


def test_what_others_cannot_reach_is_not_open_to_them(tmp_path: Path) -> None:
    make(tmp_path, "bases", mode=0o777)
    tmp_path.chmod(0o700)
    assert examine(tmp_path).open == ()


def test_uvs_lock_is_ignored_and_its_cache_is_made_private(tmp_path: Path) -> None:
    make(tmp_path, "cache/uv")
    (tmp_path / "cache/uv/.lock").touch()
    (tmp_path / "cache/uv/.lock").chmod(0o666)
    assert secure(WorkArea(tmp_path, "CTK_HOME")) == ()
    assert (tmp_path / "cache/uv").stat().st_mode & 0o777 == 0o700


def test_what_stays_open_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without modes."""
    make(tmp_path / "a", mode=0o777)
    monkeypatch.setattr(trust, "change_own_mode", lambda *_, **__: None)
    with pytest.raises(MissingOnHost, match=r"others can write to .*/a, and its file system"):
        secure(WorkArea(tmp_path / "a", "CTK_HOME"))


def test_a_world_writable_parent_is_reported(tmp_path: Path) -> None:
    make(tmp_path / "open" / "sub" / "area")
    (tmp_path / "open").chmod(0o777)
    assert examine(tmp_path / "open/sub/area").open_above == tmp_path / "open"
    assert examine(tmp_path / "open/sub/not-yet").open_above == tmp_path / "open"
    (tmp_path / "open").chmod(0o1777)
    assert examine(tmp_path / "open/sub/area").open_above is None


def test_a_directory_for_all_users_is_refused_and_stays_open(tmp_path: Path) -> None:
    """As root, `CTK_HOME=/tmp ctk cache list` would close /tmp to all others."""
    make(tmp_path / "shared")
    (tmp_path / "shared").chmod(0o1777)
    with pytest.raises(MissingOnHost, match="is a directory for all users"):
        secure(WorkArea(tmp_path / "shared", "CTK_HOME"))
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o1777


MODES = st.integers(0, 0o777).map(lambda mode: mode | 0o700)
NAMES = ("", "bases", "bases/x", "cache", "cache/uv", "cache/uv/x", "uv", "tmp")
TREES = st.dictionaries(st.sampled_from(NAMES), MODES)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(modes=TREES)
def test_a_secured_area_is_private_and_stays_so(
    tmp_path_factory: pytest.TempPathFactory, modes: dict[str, int]
) -> None:
    root = tmp_path_factory.mktemp("area")
    make(root, *modes)
    for name, mode in modes.items():
        (root / name).chmod(mode)
    tightened = secure(WorkArea(root, "CTK_HOME"))
    for name, mode in modes.items():
        now = (root / name).stat().st_mode & 0o777
        if name != "cache/uv":
            assert now == (mode & ~0o022 if root / name in tightened else mode)
    assert examine(root).open == ()
    assert secure(WorkArea(root, "CTK_HOME")) == ()
