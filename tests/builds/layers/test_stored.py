"""Layers in the store: found as they were kept, or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill, squash
from toolkit.builds.layers.layer import Layer
from toolkit.builds.layers.stored import Stored, StoredLayers
from toolkit.store.store import Kind, Store
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

KEY = "a" * 64
ABOUT = {"step": "tail"}


def make(directory: Path, content: str = "one") -> Layer:
    """A layer with one file, as a step packs it."""
    name = f"ctk-layer-{hashlib.sha256(content.encode()).hexdigest()[:32]}"
    tree = fill(directory / name.replace("ctk-", "tree-"), {f".singularity.d/{name}": "", "opt/x": content})
    path = squash(tree, directory / f"{name}.sqfs", "-all-root", "-noappend")
    return Layer(path, name, path.stat().st_size)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_kept_layer_is_found_with_its_name_and_content(tmp_path: Path, store: Store) -> None:
    assert StoredLayers(store).find(KEY) is None
    made = make(tmp_path)
    content = made.path.read_bytes()
    layers = StoredLayers(store)
    kept = layers.keep(KEY, made, tmp_path, ABOUT)
    assert kept is not None
    assert (kept.name, kept.size, kept.path.read_bytes()) == (made.name, made.size, content)
    assert not made.path.exists()
    assert StoredLayers(store).find(KEY) == Stored(kept)
    assert layers.intact()


def test_step_without_effect_is_remembered(tmp_path: Path, store: Store) -> None:
    assert StoredLayers(store).keep(KEY, None, tmp_path, ABOUT) is None
    assert StoredLayers(store).find(KEY) == Stored(None)


def test_layer_of_a_faster_build_is_used(tmp_path: Path, store: Store) -> None:
    first = StoredLayers(store).keep(KEY, make(tmp_path, "one"), tmp_path, ABOUT)
    assert StoredLayers(store).keep(KEY, make(tmp_path, "two"), tmp_path, ABOUT) == first


def test_fresh_build_finds_nothing_and_replaces_what_is_there(tmp_path: Path, store: Store) -> None:
    StoredLayers(store).keep(KEY, make(tmp_path, "one"), tmp_path, ABOUT)
    fresh = StoredLayers(store, fresh=True)
    assert fresh.find(KEY) is None
    kept = fresh.keep(KEY, make(tmp_path, "two"), tmp_path, ABOUT)
    assert StoredLayers(store).find(KEY) == Stored(kept)
    assert kept is not None
    assert kept.name == f"ctk-layer-{hashlib.sha256(b'two').hexdigest()[:32]}"


def test_own_layer_comes_before_that_of_a_shared_store(tmp_path: Path, store: Store) -> None:
    shared = Store(tmp_path / "shared")
    in_shared = StoredLayers(shared).keep(KEY, make(tmp_path, "one"), tmp_path, ABOUT)
    both = replace(store, shared=(shared.own,))
    assert StoredLayers(both).find(KEY) == Stored(in_shared)
    own = StoredLayers(both, fresh=True).keep(KEY, make(tmp_path, "two"), tmp_path, ABOUT)
    assert StoredLayers(both).find(KEY) == Stored(own)


def test_flipped_byte_with_the_same_times_is_not_found_and_is_made_again(tmp_path: Path, store: Store) -> None:
    layers = StoredLayers(store)
    kept = layers.keep(KEY, make(tmp_path), tmp_path, ABOUT)
    assert kept is not None
    _flip(kept.path)
    assert not layers.intact()
    assert StoredLayers(store).find(KEY) is None
    again = make(tmp_path / "again")
    expected = f"sha256:{hashlib.sha256(again.path.read_bytes()).hexdigest()}"
    made = StoredLayers(store).keep(KEY, again, tmp_path, ABOUT)
    assert made == replace(again, path=kept.path, digest=expected)


def test_layer_that_disappears_during_a_build_is_noticed(tmp_path: Path, store: Store) -> None:
    StoredLayers(store).keep(KEY, make(tmp_path), tmp_path, ABOUT)
    layers = StoredLayers(store)
    assert layers.find(KEY) is not None
    assert layers.intact()
    store.discard(Kind.LAYER, KEY)
    assert not layers.intact()


@pytest.mark.parametrize("name", ["ctk-layer-" + "0" * 32, "../x", "", "layer"])
def test_entry_with_another_name_than_its_mark_is_removed(tmp_path: Path, store: Store, name: str) -> None:
    kept = StoredLayers(store).keep(KEY, make(tmp_path), tmp_path, ABOUT)
    assert kept is not None
    record = kept.path.with_name("entry.json")
    document = json.loads(record.read_text())
    document["about"]["name"] = name
    record.write_text(json.dumps(document))
    assert StoredLayers(store).find(KEY) is None
    assert not kept.path.exists()


def test_entry_that_is_not_squashfs_is_not_kept(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "x.sqfs"
    path.write_bytes(b"no squashfs")
    with pytest.raises(ProgramFailed, match="cannot be read back"):
        StoredLayers(store).keep(KEY, Layer(path, "ctk-layer-" + "0" * 32, 11), tmp_path, ABOUT)
    assert StoredLayers(store).find(KEY) is None


def test_damaged_block_of_a_new_layer_is_found_before_it_is_kept(tmp_path: Path, store: Store) -> None:
    made = make(tmp_path, "one" * 100_000)
    content = bytearray(made.path.read_bytes())
    content[96:128] = bytes(32)  # behind the superblock is the first block of data
    made.path.write_bytes(content)
    with pytest.raises(ProgramFailed, match="cannot be read back after it was packed"):
        StoredLayers(store).keep(KEY, made, tmp_path, ABOUT)
    assert StoredLayers(store).find(KEY) is None


def test_store_in_a_path_that_the_runtime_splits_is_not_used(tmp_path: Path) -> None:
    shared = Store(tmp_path / "a,b")
    path = make(tmp_path).path
    shared.publish(Kind.LAYER, KEY, path, {**ABOUT, "name": path.stem})
    assert StoredLayers(Store(tmp_path / "store", (shared.own,))).find(KEY) is None


def _flip(path: Path) -> None:
    """Change the last byte that is not zero, and set the times back."""
    before = path.stat()
    content = bytearray(path.read_bytes())
    position = max(place for place, byte in enumerate(content) if byte)
    content[position] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
