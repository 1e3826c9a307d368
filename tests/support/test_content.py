"""Digests of files and directories: what changes them, and when a remembered one is used."""

from __future__ import annotations

import hashlib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.support import content
from toolkit.support.content import content_digest, others_can_change_in, private_copy, state_of_copied, walk
from toolkit.support.errors import CheckFailed, WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def files(directory: Path, *names: str) -> Path:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).touch()
    return directory


def copied(path: Path, cache: Path) -> str:
    return content_digest(path, cache, follow=True)


def test_the_digest_of_a_directory_is_that_of_its_names_modes_and_contents(tmp_path: Path) -> None:
    directory = files(tmp_path / "base", "a", "b/c")
    (directory / "link").symlink_to("a")
    digests = [content_digest(directory, tmp_path)]
    assert digests == [content_digest(directory, tmp_path)]
    (directory / "a").write_text("x")
    digests.append(content_digest(directory, tmp_path))
    (directory / "a").chmod(0o700)
    digests.append(content_digest(directory, tmp_path))
    (directory / "link").unlink()
    (directory / "link").symlink_to("b")
    digests.append(content_digest(directory, tmp_path))
    (directory / "b/c").rename(directory / "b/d")
    digests.append(content_digest(directory, tmp_path))
    assert len(set(digests)) == 5


def test_a_link_and_the_entry_after_it_are_not_mixed_up(tmp_path: Path) -> None:
    """`a -> z1` and `ab` against `a -> z1a` and `b`."""
    one, other = files(tmp_path / "one", "ab", "z1", "z1a"), files(tmp_path / "other", "b", "z1", "z1a")
    (one / "a").symlink_to("z1")
    (other / "a").symlink_to("z1a")
    assert content_digest(one, tmp_path) != content_digest(other, tmp_path)
    assert copied(one, tmp_path) != copied(other, tmp_path)


def test_what_links_lead_to_counts_for_what_is_copied(tmp_path: Path) -> None:
    """A link to the outside, through another link that is switched: its own text stays as it is."""
    tree = files(tmp_path / "tree", "own")
    for number in "12":
        files(tmp_path / "release" / number, "file")
        (tmp_path / "release" / number / "file").write_text(number)
        (tree / f"at-{number}").symlink_to(f"../release/{number}/file")
    current = tmp_path / "release/current"
    current.symlink_to("1")
    (tree / "current").symlink_to("../release/current/file")
    digests, states = [copied(tree, tmp_path)], [state_of_copied([tree])]
    current.unlink()
    current.symlink_to("2")
    digests.append(copied(tree, tmp_path))
    states.append(state_of_copied([tree]))
    (tmp_path / "release/2/file").chmod(0o600)
    digests.append(copied(tree, tmp_path))
    (tree / "nothing").symlink_to("nowhere")
    digests.append(copied(tree, tmp_path))
    (tree / "circle").symlink_to(".")
    digests.append(copied(tree, tmp_path))
    assert len(set(digests)) == 5
    assert len(set(states)) == 2


NAMES = st.sampled_from(["a", "b", "ab", "z1", "z1a", "x\n", "ü"])
TREES = st.recursive(
    st.tuples(st.just("file"), st.sampled_from(["", "1", "12"])) | st.tuples(st.just("link"), NAMES),
    lambda inside: st.tuples(st.just("directory"), st.dictionaries(NAMES, inside, max_size=3)),
    max_leaves=6,
)


def make(path: Path, tree: tuple[str, object]) -> None:
    kind, what = tree
    if kind == "file":
        path.write_text(str(what))
    elif kind == "link":
        path.symlink_to(str(what))
    else:
        path.mkdir()
        for name, inside in what.items():  # type: ignore[attr-defined]
            make(path / name, inside)


def outcome(path: Path) -> list[tuple[str, int, str]] | None:
    """What `cp` makes of a directory; None if it refuses it."""
    target = path.with_name(f"{path.name}.copy")
    done = subprocess.run(["cp", "-fLrT", path, target], capture_output=True, check=False)
    if done.returncode != 0:
        return None
    found = [(name, at.stat().st_mode, at.read_text() if at.is_file() else "") for name, at, _ in walk(target)]
    return sorted(found)


@settings(max_examples=60)
@given(trees=st.lists(st.dictionaries(NAMES, TREES, max_size=3), min_size=2, max_size=2))
def test_trees_with_one_digest_are_copied_alike(
    tmp_path_factory: pytest.TempPathFactory, trees: list[dict[str, tuple[str, object]]]
) -> None:
    base = tmp_path_factory.mktemp("trees")
    made = []
    for number, tree in enumerate(trees):
        make(base / str(number), ("directory", tree))
        made.append((copied(base / str(number), base), outcome(base / str(number))))
    (one, first), (other, second) = made
    if first is not None and second is not None:
        assert (one == other) == (first == second)


def test_a_change_that_is_undone_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("A")
    before = state_of_copied([file])
    assert state_of_copied([file]) == before
    file.write_text("B")
    file.write_text("A")
    assert state_of_copied([file]) != before


def test_a_digest_that_cannot_be_kept_is_computed_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, cache = tmp_path / "base", tmp_path / "cache"
    base.write_text("content")
    cache.touch()  # in the place of its directory, as nothing can be written on a read-only file system
    monkeypatch.setattr(content, "_SETTLED", -1)
    assert content_digest(base, cache) == f"sha256:{hashlib.sha256(b'content').hexdigest()}"


@pytest.mark.parametrize("damage", [b"", b"\xff\xfe\x80", b"sha256:12", b"x" * 71])
def test_a_damaged_note_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes) -> None:
    base, cache = tmp_path / "base", tmp_path / "cache"
    base.write_text("content")
    monkeypatch.setattr(content, "_SETTLED", -1)
    digest = content_digest(base, cache)
    (note,) = (cache / "digests").iterdir()
    assert note.read_text() == digest
    note.write_bytes(damage)
    assert content_digest(base, cache) == digest
    assert note.read_text() == digest


def test_a_note_is_used_unless_a_fresh_digest_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base, cache = tmp_path / "base", tmp_path / "cache"
    base.write_text("content")
    monkeypatch.setattr(content, "_SETTLED", -1)
    digest = content_digest(base, cache)
    (note,) = (cache / "digests").iterdir()
    note.write_text("sha256:" + "0" * 64)
    assert content_digest(base, cache) == "sha256:" + "0" * 64
    assert content_digest(base, cache, fresh=True) == digest
    assert content_digest(base, cache) == digest


def test_the_digest_of_a_file_that_is_written_to_meanwhile_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, cache = tmp_path / "base.sif", tmp_path / "cache"
    image.write_bytes(b"one")
    honest = content._digest_of

    def disturbed(file: object) -> str:
        with image.open("ab") as more:
            more.write(b"two")
        return honest(file)  # type: ignore[arg-type]

    monkeypatch.setattr(content, "_digest_of", disturbed)
    with pytest.raises(CheckFailed, match="changed while ctk read it"):
        content_digest(image, cache)
    assert not cache.exists()


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match=r"cannot read .*/none: No such file"):
        content_digest(tmp_path / "none", tmp_path)


def test_special_files_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert copied(tmp_path / "pipe", tmp_path).startswith("sha256:")


# --- copies of what others can change


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "closed").mkdir(parents=True)
    (root / "program").write_text("#!/bin/sh\n")
    (root / "program").chmod(0o4755)
    (root / "closed/file").write_text("text")
    (root / "link").symlink_to("program")
    os.mkfifo(root / "pipe")
    (root / "closed").chmod(0o555)
    return root


@pytest.mark.parametrize("follow", [True, False])
def test_private_copy_has_the_digest_of_its_source(tree: Path, tmp_path: Path, follow: bool) -> None:
    private_copy(tree, tmp_path / "copy", tmp_path / "cache", follow=follow)
    digests = {content_digest(path, tmp_path / "cache", follow=follow) for path in (tree, tmp_path / "copy")}
    assert len(digests) == 1
    assert (tmp_path / "copy/link").is_symlink() is not follow


def test_private_copy_of_what_changed_without_new_times_is_refused_and_its_digest_forgotten(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "_SETTLED", 0)
    cache, wrong = tmp_path / "cache", f"sha256:{'0' * 64}"
    right = content_digest(tree, cache)
    (note,) = (cache / "digests").iterdir()
    note.write_text(wrong)
    assert content_digest(tree, cache) == wrong
    with pytest.raises(CheckFailed, match="does not have the content that ctk read before") as error:
        private_copy(tree, tmp_path / "copy", cache)
    assert error.value.code == "base-changed"
    assert content_digest(tree, cache) == right


@pytest.mark.parametrize(("name", "expected"), [("program", True), ("pipe", False), ("closed", False)])
def test_only_files_that_all_can_write_to_are_what_others_can_change(tree: Path, name: str, expected: bool) -> None:
    """A sandbox has a `tmp` with mode 1777, and perhaps devices."""
    assert not others_can_change_in(tree)
    (tree / name).chmod(0o1777)
    assert others_can_change_in(tree) is expected
