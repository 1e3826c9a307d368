"""What another user could have put there is not opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.store.trusted import Untrusted, open_directory, open_file

STRANGER = 4242


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    for directory in (root, root / "bases", root / "bases" / "key"):
        directory.mkdir()
        directory.chmod(0o755)
    (root / "bases" / "key" / "file").write_text("content")
    (root / "bases" / "key" / "file").chmod(0o644)
    return root


def read(root: Path, owners: frozenset[int] = frozenset()) -> str:
    directory = open_directory(root, ("bases", "key"), owners)
    try:
        with os.fdopen(open_file(directory, "file", owners)) as file:
            return file.read()
    finally:
        os.close(directory)


@pytest.fixture
def owners(monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """Inodes that appear to belong to another user, so that the tests need no root."""
    said: dict[int, int] = {}
    real = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        fields = list(real(descriptor))
        fields[4] = said.get(fields[1], fields[4])
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", fstat)
    return said


PLACES = ["", "bases", "bases/key", "bases/key/file"]


@pytest.mark.parametrize("place", PLACES)
def test_a_stranger_on_the_way(tree: Path, owners: dict[int, int], place: str) -> None:
    assert read(tree) == "content"
    owners[(tree / place).stat().st_ino] = STRANGER
    with pytest.raises(Untrusted, match="belongs to user 4242"):
        read(tree)
    assert read(tree, frozenset({STRANGER})) == "content"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bits", [0o020, 0o002])
def test_others_can_write_on_the_way(tree: Path, place: str, bits: int) -> None:
    (tree / place).chmod((tree / place).stat().st_mode | bits)
    with pytest.raises(Untrusted, match="others can write"):
        read(tree, frozenset({STRANGER}))


@pytest.mark.parametrize("place", PLACES[1:])
def test_a_symlink_on_the_way(tree: Path, place: str) -> None:
    (tree / place).rename(tree.parent / "elsewhere")
    (tree / place).symlink_to(tree.parent / "elsewhere")
    with pytest.raises(OSError):
        read(tree)


def test_the_store_itself_may_be_a_symlink(tree: Path) -> None:
    (tree.parent / "link").symlink_to(tree)
    assert read(tree.parent / "link") == "content"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_no_regular_file(tree: Path, make: object) -> None:
    file = tree / "bases" / "key" / "file"
    file.unlink()
    make(file)  # type: ignore[operator]
    file.chmod(0o600)
    with pytest.raises(Untrusted, match="not a regular file"):
        read(tree)


def test_no_descriptor_stays_open(tree: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    (tree / "bases" / "key").chmod(0o777)
    for _ in range(3):
        with pytest.raises(Untrusted):
            read(tree)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
