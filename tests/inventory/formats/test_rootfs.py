"""Paths inside an image: symlinks, closed directories, and files that are too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.tree import EntryKind
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.inventory.formats.rootfs import Rootfs

FILES: dict[str, str | bytes] = {
    ".singularity.d/": "",
    "usr/lib/x.so.1.2": "library",
    "usr/lib/x.so": "-> x.so.1.2",
    "usr/lib/up": "-> ../../../../usr",
    "lib": "-> /usr/lib",
    "many/s0": "file",
    **{f"many/s{number}": f"-> s{number - 1}" for number in range(1, 43)},
    "root/secret/x": "x",
    "home/ann": "-> /root/secret",
    "text": b"caf\xe9",
}


@pytest.fixture
def rootfs(tmp_path: Path) -> Iterator[Rootfs]:
    fill(tmp_path, FILES)
    (tmp_path / "root").chmod(0o700)
    for name in ("usr", "usr/lib", "home", "many", "root/secret", "."):
        (tmp_path / name).chmod(0o755)
    with open_image(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lib/x.so", "/usr/lib/x.so.1.2"),
        ("lib//./x.so", "/usr/lib/x.so.1.2"),
        ("/lib/../x.so", None),  # `..` of /usr/lib, and not of the link
        ("/lib/up/lib", "/usr/lib"),
        ("/../../usr", "/usr"),
        ("/text/x", None),
        ("/", "/"),
        ("/many/s40", "/many/s0"),
        ("/many/s42", None),  # the kernel follows 40 links
    ],
)
def test_a_path_is_followed_as_the_kernel_follows_it(rootfs: Rootfs, path: str, expected: str | None) -> None:
    assert rootfs.resolve(path) == expected


def test_a_directory_that_only_its_owner_enters_closes_what_is_below(rootfs: Rootfs) -> None:
    assert rootfs.closed_directory("/root/secret/x") == "/root"
    assert rootfs.closed_directory("/home/ann/x") == "/root"
    assert rootfs.closed_directory("/usr/lib/x.so") is None
    assert rootfs.closed_directory("/nothing") is None


def test_a_file_that_is_too_large_is_not_read(rootfs: Rootfs) -> None:
    assert rootfs.read("/lib/x.so", 7) == b"library"
    with pytest.raises(WrongInput, match="has 7 bytes; at most 6 are expected"):
        rootfs.read("/lib/x.so", 6)


def test_kinds_names_and_links(rootfs: Rootfs) -> None:
    assert [rootfs.kind(path) for path in ("/lib", "/lib/x.so", "/none")] == [
        EntryKind.DIRECTORY,
        EntryKind.FILE,
        None,
    ]
    assert rootfs.names("/lib") == ("up", "x.so", "x.so.1.2")
    assert rootfs.subdirectories("/usr") == ("lib",)
    assert "lib" not in rootfs.subdirectories("/"), "it is a symlink"
    assert (rootfs.readlink("/lib"), rootfs.readlink("/usr")) == ("/usr/lib", None)
    assert (rootfs.size("/lib/x.so"), rootfs.size("/lib")) == (7, None)
    assert rootfs.read_text("/text") == "caf\ufffd"
