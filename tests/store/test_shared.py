"""Shared stores that are not used, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.making import put
from toolkit.store.shared import judge_shared
from toolkit.store.store import Store


def test_a_store_that_is_used_is_no_finding(tmp_path: Path) -> None:
    shared = Store(tmp_path / "shared")
    put(shared, "a")
    assert judge_shared(Store(tmp_path / "own", (shared.own,))) == ()
    assert judge_shared(Store(tmp_path / "own")) == ()


@pytest.mark.parametrize(
    ("mode", "said", "fix"),
    [
        (None, "No such file or directory", "Check CTK_STORE"),
        (0o777, "others can write to", "chmod go-w"),
        (0o755, "it has none of the directories bases, layers, packages", "`ctk cache path`"),
    ],
)
def test_each_reason_has_its_fix(tmp_path: Path, mode: int | None, said: str, fix: str) -> None:
    place = tmp_path / "shared"
    if mode is not None:
        place.mkdir()
        place.chmod(mode)
    (finding,) = judge_shared(Store(tmp_path / "own", (place,)))
    assert finding.message.startswith(f"the shared store {place} is not used: {said}")
    assert fix in str(finding.fix)


def test_a_file_is_no_store(tmp_path: Path) -> None:
    (finding,) = judge_shared(Store(tmp_path, (Path("/etc/passwd"),)))
    assert "Not a directory" in finding.message


def test_a_work_area_is_no_store_even_with_an_old_directory_of_bases(tmp_path: Path) -> None:
    for name in ("bases", "store"):
        (tmp_path / "area" / name).mkdir(parents=True, mode=0o755)
    (finding,) = judge_shared(Store(tmp_path / "own", (tmp_path / "area",)))
    assert "it is a work area, not a store" in finding.message
    assert finding.fix == "Name the directory that `ctk cache path` prints."


@pytest.mark.parametrize(("name", "word"), [("a,b", "comma"), ("a:b", "colon")])
def test_layers_of_a_store_whose_path_is_no_value_of_an_option(tmp_path: Path, name: str, word: str) -> None:
    shared = Store(tmp_path / name)
    put(shared, "a")
    (finding,) = judge_shared(Store(tmp_path / "own", (shared.own,)))
    assert finding.code == "store-not-used"
    assert finding.message == f"layers of the shared store {shared.own} are not used, because its path has a {word}"
    assert "move it" in str(finding.fix)
    shared.own.chmod(0o777)
    (finding,) = judge_shared(Store(tmp_path / "own", (shared.own,)))
    assert "is not used: others can write" in finding.message
