"""A file gets into the store whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from toolkit.store.entries import Kind
from toolkit.store.publishing import content_name, writing
from toolkit.support.errors import MissingOnHost, WrongInput

KEY = "ab" * 32


@pytest.mark.parametrize(
    ("kind", "name"), [(Kind.BASE, "image.sif"), (Kind.LAYER, "layer.sqfs"), (Kind.PACKAGE, "six-1.whl")]
)
def test_names_of_contents(tmp_path: Path, kind: Kind, name: str) -> None:
    (tmp_path / "six-1.whl").touch()
    assert content_name(kind, KEY, tmp_path / "six-1.whl", {}) == name


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["missing", "link", "pipe", "directory", ".hidden", "entry.json", "a\nb"])
def test_files_that_are_not_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for file in (".hidden", "entry.json", "a\nb"):
        (tmp_path / file).touch()
    with pytest.raises(WrongInput, match="cannot be kept in the store"):
        content_name(Kind.PACKAGE, KEY, tmp_path / name, {})


@pytest.mark.parametrize("about", [{"a": "\ud800"}, {"a": "b" * 5000}, {str(number): "" for number in range(40)}])
def test_descriptions_that_are_not_kept(tmp_path: Path, about: dict[str, str]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WrongInput):
        content_name(Kind.LAYER, KEY, tmp_path / "file", about)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "disk-full"),
        (errno.EDQUOT, "disk-full"),
        (errno.EROFS, "store-not-writable"),
        (errno.EACCES, "store-not-writable"),
        (errno.EIO, "store-not-writable"),
    ],
)
def test_errors_of_the_file_system(number: int, code: str) -> None:
    with pytest.raises(MissingOnHost, match=os.strerror(number)) as refused, writing(Path("/store")):
        raise OSError(number, os.strerror(number))
    assert refused.value.code == code
    assert "/store" in refused.value.message
    assert refused.value.fix
