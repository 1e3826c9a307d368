"""libibverbs, its providers and NCCL's plug-ins, where the loader of an image looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gpu.small_images import library
from tests.inventory.making import fill, python_files
from toolkit.gpu.facts import Network
from toolkit.gpu.loader import read_loader
from toolkit.gpu.network import read_network
from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path


def network(directory: Path, *files: str) -> Network:
    fill(directory, python_files() | dict.fromkeys(files, library()))
    with open_image(directory) as rootfs:
        return read_network(read_loader(rootfs, read_inventory(rootfs)))


def test_libraries_and_plugins_are_found_on_the_path(tmp_path: Path) -> None:
    lib = "usr/lib64"
    found = network(
        tmp_path,
        f"{lib}/libibverbs.so.1",
        f"{lib}/libibverbs/libmlx5-rdmav34.so",
        f"{lib}/libibverbs/libbnxt_re-rdmav34.so",
        f"{lib}/libibverbs/README",
        f"{lib}/libnccl-net.so",
        f"{lib}/libnccl-net-aws-ofi.so",
        f"{lib}/libnccl-network-tuner.so",
        "opt/elsewhere/libnccl-net.so",
    )
    assert found.verbs == f"/{lib}/libibverbs.so.1"
    assert found.providers == ("bnxt_re", "mlx5")
    assert set(found.plugins) == {f"/{lib}/libnccl-net.so", f"/{lib}/libnccl-net-aws-ofi.so"}


def test_an_image_without_them(tmp_path: Path) -> None:
    assert network(tmp_path) == Network()
