"""The partitions of a layered image merged into one, as the kernel shows them."""

from __future__ import annotations

import os
import stat
import struct
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, fill, overlay, squash, system, write_sif
from toolkit.builds.layers.flatten import flatten, unpack
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.sif import DataType, read_sif
from toolkit.runtime.engine import BuildOptions
from toolkit.support.errors import ProgramFailed, WrongInput
from toolkit.support.namespace import as_owner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.programs
LAYER = "ctk-layer-" + "0" * 32


def listing(image: Path) -> list[str]:
    """Modes, owners, sizes and names of the root partition's entries."""
    system = read_sif(image).of_type(DataType.PARTITION)[0]
    command = as_owner(["unsquashfs", "-lln", "-o", str(system.offset), str(image)])
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    found = (line.split() for line in lines if "squashfs-root/" in line)
    return sorted(" ".join([*words[:2], *words[5:]]) for words in found)


def whiteout(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def test_flat_image_is_what_the_layers_show(tmp_path: Path) -> None:
    base = fill(
        tmp_path / "base",
        {
            "usr/first": "one", "usr/gone": "x", "usr/to-file/below": "x", "usr/to-directory": "x", "usr/kept": "x",
            "usr/closed/": "", "usr/link": "-> kept", "opt/gone/below": "x", "opt/back/old": "x",
        },
    )  # fmt: skip
    (base / "usr/second").hardlink_to(base / "usr/first")
    first = fill(
        tmp_path / "first",
        {"usr/first": "two", "usr/to-file": "now a file", "usr/to-directory/below": "y", "usr/link": "a file"},
    )
    for name in ("usr/gone", "opt/gone", "opt/back"):
        whiteout(first / name)
    (first / "usr/closed").mkdir()
    (first / "usr/closed").chmod(0o700)
    second = fill(tmp_path / "second", {"opt/back/new": "z", "usr/.wh..wh..opq": "", f".singularity.d/{LAYER}": ""})
    of_another = ("-p", "opt/back/new m 6751 33 44")  # as only root could
    options: dict[Path, tuple[str, ...]] = {base: (), first: (), second: of_another}
    layers = [squash(tree, tmp_path / f"{tree.name}.squashfs", *more).read_bytes() for tree, more in options.items()]
    parts = [
        Part(0x4001, b"Bootstrap: localimage\n"),
        system(layers[0]),
        overlay(layers[1]),
        Part(0x4004, layers[2], name=LAYER, partition_type=4),
        Part(0x4006, b'{"a": 1}', name="inspect-metadata.json"),
        Part(0x4006, b'{"schema": "ctk.image/1", "layers": []}', name="ctk.json"),
        Part(0x4005, b"signature"),
    ]
    image = write_sif(tmp_path / "image.sif", parts)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    flatten(image, tmp_path / "flat.sif", scratch, BuildOptions(compression="gzip", cores=1))

    with open_image(tmp_path / "flat.sif") as flat:
        assert flat.form == "flat SIF"
        names = (".wh..wh..opq", "closed", "first", "kept", "link", "second", "to-directory", "to-file")
        assert flat.names("/usr") == names  # the kernel takes no file for a mark
        assert flat.names("/usr/to-directory") == ("below",)
        assert (flat.read("/usr/first"), flat.read("/usr/second")) == (b"two", b"one")
        assert (flat.read("/usr/link"), flat.read("/usr/kept")) == (b"a file", b"x")
        assert flat.read("/usr/to-file") == b"now a file"
        assert flat.names("/opt") == ("back",)
        assert flat.names("/opt/back") == ("new",)
        assert flat.names("/.singularity.d") == ()
    entries = listing(tmp_path / "flat.sif")
    assert "-rwsr-s--x 33/44 squashfs-root/opt/back/new" in entries
    assert "drwx------ 0/0 squashfs-root/usr/closed" in entries
    sif = read_sif(tmp_path / "flat.sif")
    assert sif.definition() == "Bootstrap: localimage\n"
    assert sif.json_object("inspect-metadata.json") == {"a": 1}
    assert sif.json_object("ctk.json") is None
    assert len(sif.descriptors) == 3
    assert sif.architecture == "amd64"
    assert (tmp_path / "flat.sif").read_bytes()[:32] == image.read_bytes()[:32]


def test_flatten_of_a_damaged_partition_leaves_no_image(tmp_path: Path) -> None:
    image = write_sif(tmp_path / "image.sif", [system(b"hsqs" * 100)])
    with pytest.raises(ProgramFailed, match="merging the layers failed: unsquashfs"):
        flatten(image, tmp_path / "flat.sif", tmp_path, BuildOptions())
    assert not (tmp_path / "flat.sif").exists()


def test_flatten_refuses_an_image_without_a_system(tmp_path: Path) -> None:
    image = write_sif(tmp_path / "image.sif", [overlay(b"hsqs" * 100)])
    with pytest.raises(WrongInput, match="no system partition"):
        flatten(image, tmp_path / "flat.sif", tmp_path, BuildOptions())


def test_flat_image_keeps_links_and_capabilities(tmp_path: Path) -> None:
    base = fill(tmp_path / "base", {"usr/first": "one", "usr/ping": "program", "usr/plain": "program"})
    (base / "usr/second").hardlink_to(base / "usr/first")
    # CAP_NET_RAW, permitted and effective (linux/capability.h, version 2), given by root of the namespace.
    value = struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0)
    give = f"import os; os.setxattr({str(base / 'usr/ping')!r}, 'security.capability', {value!r})"
    owned(sys.executable, "-c", give)
    owned("mksquashfs", str(base), str(tmp_path / "base.squashfs"), "-quiet", "-no-progress")
    layer = squash(fill(tmp_path / "layer", {"usr/plain": "changed"}), tmp_path / "layer.squashfs").read_bytes()
    parts = [system((tmp_path / "base.squashfs").read_bytes()), overlay(layer)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    unpack(read_sif(write_sif(tmp_path / "image.sif", parts)), scratch / "tree", scratch)
    usr = scratch / "tree" / "usr"
    assert usr.joinpath("first").samefile(usr / "second")
    assert (usr / "plain").read_text() == "changed"
    read = f"import os; assert os.getxattr({str(usr / 'ping')!r}, 'security.capability') == {value!r}"
    owned(sys.executable, "-c", read)


def owned(*argv: str) -> None:
    subprocess.run(as_owner(argv), check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
