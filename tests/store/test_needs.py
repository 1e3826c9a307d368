"""Which images were made with which entries."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.store.making import put
from toolkit.store.needs import ImageNeeds, images, note_image
from toolkit.store.store import Kind, Store


def test_images_that_still_exist(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    base, layer = put(store, "a", Kind.BASE), put(store, "b")
    image, other = tmp_path / "image.sif", Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.sif"))
    for path in (image, other):
        path.touch()
        note_image(store.own, path, "keras-bert", [base.path, layer.path, layer.path])
    expected = frozenset({(Kind.BASE, base.key), (Kind.LAYER, layer.key)})
    assert images(store.own) == (ImageNeeds(image, "keras-bert", expected), ImageNeeds(other, "keras-bert", expected))
    note_image(store.own, image, "keras-bert", [base.path])
    other.unlink()
    assert images(store.own) == (ImageNeeds(image, "keras-bert", frozenset({(Kind.BASE, base.key)})),)
    assert len(list((store.own / "images").iterdir())) == 2
    images(store.own, forget=True)
    assert len(list((store.own / "images").iterdir())) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "null",
        "[]",
        json.dumps({"image": "relative", "recipe": "", "entries": []}),
        json.dumps({"image": "/", "recipe": "", "entries": [["bases"]]}),
        json.dumps({"image": "/", "recipe": "", "entries": [["other", "ab" * 32]]}),
        json.dumps({"image": "/", "recipe": "", "entries": [["bases", "../.."]]}),
        json.dumps({"image": "/", "recipe": "", "entries": 3}),
        json.dumps({"image": "/\0", "recipe": "", "entries": {}}),
        json.dumps({"image": "/", "recipe": [], "entries": []}),
    ],
    ids=range(11),
)
def test_damaged_notes(tmp_path: Path, text: str) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "note").write_text(text)
    assert images(tmp_path) == ()


def test_where_nothing_can_be_written_nothing_is_noted(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    note_image(tmp_path / "file", tmp_path / "image.sif", "recipe", [])
    assert images(tmp_path / "file") == ()
