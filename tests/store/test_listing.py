"""What a store holds, whoever wrote it."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.store.making import put
from toolkit.store.listing import Listed, entries, entries_of
from toolkit.store.needs import note_image
from toolkit.store.store import Kind, Store

if TYPE_CHECKING:
    from pathlib import Path


def test_entries_by_kind_the_last_used_first(tmp_path: Path) -> None:
    store, shared = Store(tmp_path / "own", (tmp_path / "shared", tmp_path / "missing")), Store(tmp_path / "shared")
    put(store, "old", unused=100)
    put(store, "new")
    base = put(shared, "base", Kind.BASE)
    put(store, "six-1.whl", Kind.PACKAGE)
    (tmp_path / "image.sif").touch()
    note_image(store.own, tmp_path / "image.sif", "recipe", [base.path])
    found = entries(store)
    assert [(listed.root.name, listed.words) for listed in found] == [
        ("shared", "base"),
        ("own", "new"),
        ("own", "old"),
        ("own", "six-1.whl"),
    ]
    assert [need.recipe for need in found[0].needed_by] == ["recipe"]
    assert all(listed.problem is None and listed.size > 0 and not listed.needed_by for listed in found[1:])


def test_damaged_entries_are_listed_with_their_problem(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (put(store, "a").path.parent / "entry.json").write_text("{")
    (put(store, "b").path.parent / "entry.json").unlink()
    put(store, "c").path.unlink()
    put(store, "d").path.parent.chmod(0o777)
    (tmp_path / "layers" / ("0" * 64)).write_text("file")
    found = {listed.problem for listed in entries_of(tmp_path)}
    assert len(found) == 4
    assert None not in found
    assert all(listed.words == listed.key[:12] for listed in entries_of(tmp_path))


def test_a_layer_is_named_by_its_recipe_and_step(tmp_path: Path) -> None:
    about = {"step": "files and post script", "recipe": "mine", "name": f"ctk-layer-{'ab' * 16}"}
    made = Listed(tmp_path, Kind.LAYER, "0" * 64, 1, 0.0, about)
    assert made.words == "mine: files and post script (abababababab)"
    nothing_changed = {name: text for name, text in about.items() if name != "name"}
    assert replace(made, about=nothing_changed).words == "mine: files and post script"


def test_a_package_is_named_once(tmp_path: Path) -> None:
    def words(file: str, project: str) -> str:
        return Listed(tmp_path, Kind.PACKAGE, "0" * 64, 1, 0.0, {"file": file, "project": project}).words

    wheel = "python_dateutil-2.9.0-py2.py3-none-any.whl"
    assert words(wheel, "python-dateutil") == wheel
    assert words("Zope.Interface-7.tar.gz", "zope-interface") == "Zope.Interface-7.tar.gz"
    assert words(wheel, "six") == f"{wheel} six"


def test_what_is_no_entry_is_not_listed(tmp_path: Path) -> None:
    for name in ("layers", "bases"):
        (tmp_path / name).mkdir()
    (tmp_path / "layers" / "README").touch()
    (tmp_path / "layers" / f".removed-{'0' * 64}-1").mkdir()
    (tmp_path / "packages").touch()
    assert entries(Store(tmp_path)) == ()
    assert entries(Store(tmp_path / "missing")) == ()


def test_an_empty_content_takes_what_its_record_takes(tmp_path: Path) -> None:
    store = Store(tmp_path)
    entry = put(store, "a")
    os.truncate(entry.path, 0)
    (listed,) = entries_of(tmp_path)
    assert listed.size == (entry.path.parent / "entry.json").stat().st_blocks * 512
