"""What [[files]] take from outside a recipe's project, and what of that is private: the rule, and the gathering."""

from __future__ import annotations

import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.recipes.model import Base, FileCopy, Recipe
from toolkit.recipes.outside import (
    CREDENTIALS,
    CREDENTIALS_OF_HOST,
    Copied,
    Private,
    copied_files,
    judge_base,
    judge_copies,
    require_allowed,
    require_targets,
    why_private,
    without_allowed,
)
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    import os

PROJECT = Path("/home/ann/project")
FILE, DIRECTORY, LINK = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK


def recipe_of(project: Path, *sources: str | Path) -> Recipe:
    """A recipe in `project`/defs that copies `sources`, which are relative to it."""
    path = project / "defs/mine.toml"
    files = tuple(FileCopy(path.parent / source, "/opt/x") for source in sources)
    return Recipe("mine", path, Base("b", "docker", "x"), files=files)


# --- the rule


@pytest.mark.parametrize("place", [*CREDENTIALS_OF_HOST, *(f"/home/ann/{name}" for name in CREDENTIALS)])
@pytest.mark.parametrize("project", [Path("/"), PROJECT], ids=["inside", "outside"])
def test_a_name_for_credentials_is_private_with_any_mode(place: str, project: Path) -> None:
    for path in (Path(place), Path(place, "deeper", "file")):
        assert why_private(path, FILE | 0o644, project) == "a name used for credential files"
    assert why_private(Path(f"{place}-like"), FILE | 0o644, project) is None


@pytest.mark.parametrize(
    ("kind", "mode", "private"),
    [
        *((FILE, 0o600, True), (FILE, 0o400, True), (FILE, 0o611, True), (FILE, 0o640, False), (FILE, 0o604, False)),
        *((DIRECTORY, 0o700, True), (DIRECTORY, 0o711, False), (DIRECTORY, 0o750, False), (LINK, 0o700, False)),
    ],
)
def test_outside_the_project_the_mode_counts(kind: int, mode: int, private: bool) -> None:
    assert (why_private(Path("/data/x"), kind | mode, PROJECT) is not None) is private
    assert why_private(PROJECT / "x", kind | mode, PROJECT) is None


NAMES = st.text("abc .'$", min_size=1, max_size=6).filter(lambda name: name.strip(".") != "")
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: Path("/nowhere", *names))
COPIED = st.builds(
    lambda path, below, outside: Copied(1, path, outside, tuple(Private(path / name, "mode 0600") for name in below)),
    PATHS,
    st.lists(NAMES, max_size=3, unique=True),
    st.booleans(),
)


@given(st.lists(COPIED, max_size=4))
def test_the_options_that_the_error_names_allow_what_it_refuses(copied: list[Copied]) -> None:
    recipe = recipe_of(PROJECT)
    if not any(file.private for file in copied):
        require_allowed(recipe, copied)
        return
    with pytest.raises(WrongInput) as refused:
        require_allowed(recipe, copied)
    words = shlex.split((refused.value.fix or "").partition(" add ")[2])
    assert set(words[::2]) == {"--allow-file"}
    left = without_allowed(copied, map(Path, words[1::2]))
    require_allowed(recipe, left)
    assert all(file.outside for file in left), "what lies outside is listed all the same"


# --- gathering


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in a home that is closed to others, with things around it."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    for directory in ("project/defs", "project/data", "open/deep", "closed/deep", ".ssh"):
        (home / directory).mkdir(parents=True)
    for file in (
        "project/train.py",
        "project/data/a.csv",
        "open/b.csv",
        "open/deep/key",
        "closed/deep/c.csv",
        ".ssh/id",
    ):
        (home / file).touch(0o644)
    (home / "open/deep/key").chmod(0o600)
    (home / "project/data/a.csv").chmod(0o600)
    for directory in (home / "closed", home, tmp_path):
        directory.chmod(0o700)
    return home / "project"


def outcome(project: Path, *sources: str | Path) -> list[tuple[str, bool, list[str]]]:
    """Of each place that is taken: where it is, whether outside, and what is private of it; relative to the home."""
    home = project.parent
    return [
        (
            str(file.path.relative_to(home)),
            file.outside,
            [str(private.path.relative_to(home)) for private in file.private],
        )
        for file in copied_files(recipe_of(project, *sources))
    ]


def test_what_lies_in_the_project_is_copied_without_a_word(project: Path) -> None:
    (project / "data/link").symlink_to("../train.py")
    (project / "data/loop").symlink_to(".")
    assert outcome(project, "../train.py", "../data", "..") == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("../../open/b.csv", [("open/b.csv", True, [])]),
        ("../../open", [("open", True, ["open/deep/key"])]),
        ("../../open/deep/key", [("open/deep/key", True, ["open/deep/key"])]),
        ("../../closed/deep/c.csv", [("closed/deep/c.csv", True, ["closed/deep/c.csv"])]),
        ("../../closed", [("closed", True, ["closed"])]),
        ("../../.ssh/id", [(".ssh/id", True, [".ssh/id"])]),
        ("../../.ssh", [(".ssh", True, [".ssh"])]),
        ("../..", [(".", True, [".ssh", "closed", "open/deep/key"])]),
    ],
)
def test_what_lies_outside_is_found(project: Path, source: str, expected: list[tuple[str, bool, list[str]]]) -> None:
    assert sorted((place, outside, sorted(private)) for place, outside, private in outcome(project, source)) == expected
    assert outcome(project, (project / "defs" / source).resolve()) == outcome(project, source)


def test_a_symlink_is_judged_by_where_it_leads(project: Path) -> None:
    (project / "innocent.txt").symlink_to("../.ssh/id")
    (project / "data/sub").mkdir()
    (project / "data/sub/more").symlink_to(project.parent / "open")
    (project.parent / "open/next").symlink_to("../closed/deep")
    (project / "data/gone").symlink_to("nowhere")
    assert outcome(project, "../innocent.txt") == [(".ssh/id", True, [".ssh/id"])]
    assert outcome(project, "../data") == [
        ("open", True, ["open/deep/key"]),
        ("closed/deep", True, ["closed/deep"]),
    ]


def test_symlink_to_nothing_is_named_before_the_build(project: Path) -> None:
    (project / "data/good").symlink_to("a.csv")
    require_targets(recipe_of(project, "../data"))
    (project / "data/more").symlink_to(project.parent / "open")
    (project.parent / "open/gone").symlink_to("/nowhere/at all")
    with pytest.raises(WrongInput, match="open/gone, a symlink to /nowhere/at all, which does not exist") as caught:
        require_targets(recipe_of(project, "../data"))
    assert caught.value.code == "dangling-symlink"


def test_defs_behind_a_symlink_belong_to_the_directory_that_holds_the_link(project: Path) -> None:
    (project / "defs").rmdir()
    (project / "defs").symlink_to("../open")
    assert outcome(project, "b.csv") == [("open/b.csv", True, [])]


def test_credentials_within_a_project_are_private_too(project: Path) -> None:
    """Somebody's project is their home itself."""
    home = project.parent
    (home / "defs").mkdir()
    [copied] = copied_files(recipe_of(home, "../.ssh/id"))
    assert (copied.outside, [private.path for private in copied.private]) == (False, [home / ".ssh/id"])
    assert without_allowed([copied], [home / ".ssh"]) == ()


def test_each_place_is_one_line_with_the_option_to_type(project: Path) -> None:
    home = project.parent
    for number in range(9):
        (home / f"open/k{number}").touch(0o600)
    findings = judge_copies(copied_files(recipe_of(project, "../../open/b.csv", "../../.ssh/id", "../../open")))
    assert [(finding.code, "\n" in finding.message, finding.fix) for finding in findings] == [
        ("file-outside-project", False, None),
        ("private-file", False, None),
        ("private-file", False, None),
    ]
    assert findings[0].message == f"files[1] copies {home}/open/b.csv, which is outside the project"
    assert findings[1].message.endswith(f"`ctk build` needs --allow-file {home}/.ssh/id")
    assert "5 others)" in findings[2].message
    assert findings[2].message.endswith(f"`ctk build` needs --allow-file {home}/open")


def test_a_base_from_outside_the_project_is_named(tmp_path: Path) -> None:
    def over(bootstrap: str, reference: str | Path) -> list[str]:
        recipe = Recipe("mine", tmp_path / "project/defs/mine.toml", Base("b", bootstrap, str(reference)))
        return [finding.code for finding in judge_base(recipe)]

    assert over("localimage", tmp_path / "elsewhere.sif") == ["base-outside-project"]
    assert over("docker-archive", tmp_path / "image.tar") == ["base-outside-project"]
    assert over("localimage", tmp_path / "project/base.sif") == []
    assert over("docker", "library/debian") == []


def test_a_file_that_disappears_while_it_is_listed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "project/data"
    data.mkdir(parents=True)
    for name in ("a", "b", "c"):
        (data / name).touch()
    lstat = Path.lstat

    def slow(path: Path) -> os.stat_result:
        if path.name == "b":
            path.unlink(missing_ok=True)
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", slow)
    recipe = recipe_of(tmp_path / "project", "../data")
    require_targets(recipe)
    assert copied_files(recipe) == ()
    assert sorted(path.name for path in data.iterdir()) == ["a", "c"]
