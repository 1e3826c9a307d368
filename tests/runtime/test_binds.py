"""Links that lead out of what a container sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.runtime.binds import hidden_links, unbound_symlinks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def world(tmp_path: Path) -> Path:
    for directory in ("home/work/sub/deep/deeper", "scratch/data", "scratch/images", "home/sets"):
        (tmp_path / directory).mkdir(parents=True)
    for number in range(3):
        (tmp_path / "scratch/images" / f"{number}.png").touch()
    return tmp_path


def found(world: Path, *bound: Path) -> dict[str, Path]:
    links = unbound_symlinks(world / "home/work", (world / "home", *bound))
    return {str(link.link): link.bind for link in links}


def test_a_link_out_names_the_directory_to_bind(world: Path) -> None:
    (world / "home/work/data").symlink_to(world / "scratch/data")
    (world / "home/work/sub/relative").symlink_to("../../../scratch/data")
    assert found(world) == {"data": world / "scratch/data", "sub/relative": world / "scratch/data"}
    assert found(world, world / "scratch") == {}


def test_links_to_files_need_their_directory(world: Path) -> None:
    for number in range(3):
        (world / "home/work" / f"{number}.png").symlink_to(world / "scratch/images" / f"{number}.png")
    assert set(found(world).values()) == {world / "scratch/images"}


def test_every_step_of_the_way_counts(world: Path) -> None:
    (world / "home/big").symlink_to(world / "scratch")
    (world / "home/work/data").symlink_to(world / "home/big/data")
    assert found(world) == {"data": world / "scratch/data"}


def test_a_way_that_leaves_and_comes_back_is_broken_inside_too(world: Path) -> None:
    (world / "scratch/back").symlink_to(world / "home/sets")
    (world / "home/work/data").symlink_to(world / "scratch/back")
    assert found(world) == {"data": world / "scratch/back"}


def test_a_home_that_is_itself_reached_by_a_link_is_bound(world: Path) -> None:
    (world / "users").symlink_to(world / "home")
    (world / "home/work/data").symlink_to(world / "users/sets")
    links = unbound_symlinks(world / "users/work", (world / "users",))
    assert links == ()


def test_what_is_left_out(world: Path) -> None:
    work = world / "home/work"
    (work / "inside").symlink_to("sub")
    (work / "nowhere").symlink_to(world / "scratch/missing")
    (work / "loop").symlink_to("loop")
    (work / "python").symlink_to("/usr/bin/env")
    (work / "sub/deep/deeper/data").symlink_to(world / "scratch/data")
    assert found(world) == {}


def test_one_warning_for_each_bind(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(world / "home"))
    # The test's directory is itself in /tmp, which every container shows.
    monkeypatch.setattr("toolkit.runtime.binds._ALWAYS_BOUND", ())
    for number in range(3):
        (world / "home/work" / f"{number}.png").symlink_to(world / "scratch/images" / f"{number}.png")
    warnings = hidden_links(world / "home/work", [])
    assert [(warning.code, warning.fix) for warning in warnings] == [
        ("link-leads-out", f"Add --bind {world}/scratch/images")
    ]
    assert "0.png (and 2 more)" in warnings[0].message
    assert hidden_links(world / "home/work", [f"{world}/scratch"]) == ()
    assert hidden_links(world / "home/work", [f"/elsewhere:{world}/scratch:ro"]) == ()
    assert len(hidden_links(world / "home/work", [f"{world}/scratch:/data"])) == 1


def test_who_has_no_home_gets_the_other_warnings(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.runtime.binds.home", lambda: None)
    monkeypatch.setattr("toolkit.runtime.binds._ALWAYS_BOUND", ())
    (world / "home/work/data").symlink_to(world / "home/sets")
    assert [warning.fix for warning in hidden_links(world / "home/work", [])] == [f"Add --bind {world}/home/sets"]


def test_links_inside_a_sandbox_are_not_the_project_s(world: Path) -> None:
    sandbox = world / "home/work/sb"
    (sandbox / ".singularity.d").mkdir(parents=True)
    (sandbox / "var").mkdir()
    for path in (sandbox / "run", sandbox / "var/run"):
        path.symlink_to(world / "scratch/data")
    assert found(world) == {}
    (world / "home/work/data").symlink_to(world / "scratch/data")
    assert set(found(world)) == {"data"}
