"""What kind of thing a path is: one answer for every command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import toolkit
from tests.inventory.making import Part, system, write_sif
from toolkit.inventory.formats.kinds import IMAGES, PathKind, existing_image, kind_of
from toolkit.support.errors import WrongInput

CONTENTS = {
    PathKind.SQUASHFS: b"hsqs" + bytes(60),
    PathKind.TAR: b"x".ljust(257, b"\0") + b"ustar",
    PathKind.GZIP: b"\x1f\x8b\x08" + bytes(60),
    PathKind.EXT: bytes(0x438) + b"\x53\xef",
    PathKind.PROGRAM: b"\x7fELF",
    PathKind.DISK: b"QFI\xfb",
    PathKind.LFS_POINTER: b"version https://git-lfs.github.com/spec/v1",
    PathKind.PAGE: b"\n <!DOCTYPE html><html>",
    PathKind.DEFINITION: b"Bootstrap: docker\n",
    PathKind.EMPTY: b"",
    PathKind.DAMAGED: bytes(100),
    PathKind.OTHER_FILE: b"SIF_MAGIC at the wrong place",
    PathKind.SIF: b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0",  # cut off: still a SIF
}
DIRECTORIES = {PathKind.SANDBOX: ".singularity.d", PathKind.ROOT: "usr", PathKind.DIRECTORY: "src"}


@pytest.fixture
def paths(tmp_path: Path) -> dict[PathKind, Path]:
    """A path of each kind; none of their names says what it is."""
    found = {kind: tmp_path / f"{number}.sif" for number, kind in enumerate(PathKind)}
    for kind, content in CONTENTS.items():
        found[kind].write_bytes(content)
    for kind, name in DIRECTORIES.items():
        (found[kind] / name).mkdir(parents=True)
    os.mkfifo(found[PathKind.SPECIAL])
    write_sif(found[PathKind.OCI_SIF], [Part(0x400A, b"{}")])
    return found


def test_each_kind_is_known_by_its_content(tmp_path: Path, paths: dict[PathKind, Path]) -> None:
    assert {kind: kind_of(path) for kind, path in paths.items()} == {kind: kind for kind in PathKind}
    assert kind_of(write_sif(tmp_path / "whole", [system(bytes(4096))])) is PathKind.SIF


def test_only_what_the_runtime_runs_is_an_image(paths: dict[PathKind, Path]) -> None:
    for kind, path in paths.items():
        if kind in IMAGES:
            assert existing_image(path) == path
            continue
        with pytest.raises(WrongInput) as caught:
            existing_image(path)
        assert str(path) in caught.value.message
    for kind, message in {
        PathKind.SPECIAL: "is not an image: it is neither a file nor a directory",
        PathKind.ABSENT: "there is no image",
        PathKind.ROOT: "is a directory, but not a sandbox",
        PathKind.OTHER_FILE: "is not an image: neither SIF nor squashfs",
        PathKind.TAR: "is not an image: it is a tar archive",
    }.items():
        with pytest.raises(WrongInput, match=message):
            existing_image(paths[kind])


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.sif").touch()

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(WrongInput, match=r"cannot read .*x\.sif: Permission denied"):
        kind_of(tmp_path / "x.sif")


def test_the_magic_numbers_of_images_are_in_one_place() -> None:
    """Who asks for them elsewhere decides by itself what a path is: `kind_of` answers that."""
    package = Path(toolkit.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text()
        if path.name not in ("sif.py", "squashfs.py", "kinds.py"):
            assert "SIF_MAGIC" not in text, path
            assert 'b"hsqs"' not in text, path
            assert '/ ".singularity.d").is_dir' not in text, path


@pytest.mark.parametrize(
    ("wanted", "beside"),
    [
        ("first", "first.sif is there"),
        ("FIRST.sif", "first.sif is there"),
        ("frist.sif", "first.sif is there"),
        ("box.sif", "box is there"),
        ("thrid.sif", "third.sif and thirds.sif are there"),
        ("nothing.sif", ""),
        ("none/first.sif", ""),
    ],
)
def test_absent_image_has_the_one_beside_it_in_its_message(tmp_path: Path, wanted: str, beside: str) -> None:
    for name in ("first.sif", "third.sif", "thirds.sif", "first.txt"):
        (tmp_path / name).touch()
    (tmp_path / "box" / ".singularity.d").mkdir(parents=True)
    with pytest.raises(WrongInput) as caught:
        existing_image(tmp_path / wanted)
    fix = (caught.value.fix or "").replace(f"{tmp_path}/", "")
    assert fix == f"{beside}{'. ' if beside else ''}Build one with `ctk build RECIPE`."
