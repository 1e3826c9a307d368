"""What layers touch, and which Python an image has: values of the guard over layers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.pins.guard.trees import layer_between
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.sandbox import Sandbox
from toolkit.pins.guard.layer_state import Touched, TreeDisk, View, search_order, view_of, view_over

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for directory in ("usr/lib/python3/dist-packages/mine", "proc/1/site-packages", "opt/x/site-packages"):
        (tmp_path / "root" / directory).mkdir(parents=True)
    return tmp_path / "root"


def opened(root: Path) -> Rootfs:
    return Rootfs(Sandbox(root), str(root), "sandbox")


def test_layers_touch_what_they_hold_and_hide(root: Path, tmp_path: Path) -> None:
    after = tmp_path / "after"
    (after / "usr/lib/python3/new").mkdir(parents=True)
    (after / "usr/lib/python3/new/file").touch()
    layer = Rootfs(layer_between(root, after), "layer", "layer")
    touched = Touched.by([layer])
    assert touched.directories == {"/", "/usr", "/usr/lib", "/usr/lib/python3", "/usr/lib/python3/new"}
    assert touched.others == {"/opt", "/proc", "/usr/lib/python3/dist-packages", "/usr/lib/python3/new/file"}
    assert touched.covers("/opt")
    assert not (touched | Touched()).covers("/opt/x"), "it is not there any more"


def test_site_directories_are_those_of_the_image_alone(root: Path, tmp_path: Path) -> None:
    (root / "opt/link").mkdir()
    (root / "opt/link/site-packages").symlink_to("../x")
    view = view_of(opened(root))
    assert view.sites == ("/opt/x", "/opt/x/site-packages", "/usr/lib/python3/dist-packages")
    after = tmp_path / "after"
    (after / "srv/site-packages").mkdir(parents=True)
    (after / "opt").mkdir()
    (after / "usr").mkdir()
    layer = layer_between(root, after)
    alone = Rootfs(layer, "layer", "layer")
    later = view_over(view, opened(root).over([layer]), Touched.by([alone]), [alone])
    assert later.sites == ("/srv/site-packages",)


def test_files_below_a_directory_are_those_that_a_walk_lists(root: Path) -> None:
    (root / "opt/x/deep").mkdir()
    for name in ("a", "deep/b"):
        (root / "opt/x" / name).touch()
    (root / "opt/x/broken").symlink_to("nowhere")
    (root / "opt/x/elsewhere").symlink_to("../../usr")
    found = set(TreeDisk(opened(root)).files_below("/opt/x"))
    assert found == {"/opt/x/a", "/opt/x/broken", "/opt/x/deep/b"}


def test_search_order_is_that_of_the_python_of_the_lock(root: Path) -> None:
    assert search_order(opened(root), "/usr/bin/python3") == []
    for prefix in ("usr", "opt/conda"):
        (root / prefix / "bin").mkdir(parents=True)
        (root / prefix / "bin/python3.11").touch()
        (root / prefix / "bin/python3").symlink_to("python3.11")
        (root / prefix / "lib/python3.11/site-packages").mkdir(parents=True)
    debian, conda = ["/usr/lib/python3/dist-packages"], ["/opt/conda/lib/python3.11/site-packages"]
    rootfs = opened(root)
    assert search_order(rootfs, None) == debian
    assert search_order(rootfs, "/opt/conda/bin/python3") == conda
    assert search_order(rootfs, "/usr/bin/python3.11") == debian
    assert search_order(rootfs, "/gone") == debian


def distribution(directory: Path, version: str) -> None:
    (directory / f"torch-{version}.dist-info").mkdir(parents=True)
    (directory / f"torch-{version}.dist-info/METADATA").write_text(f"Name: torch\nVersion: {version}\n")


def versions(view: View) -> set[str]:
    return {copy["version"] for copy in view.copies.values()}


def viewed(root: Path, after: Path) -> tuple[View, View]:
    layer = layer_between(root, after)
    alone = Rootfs(layer, "layer", "layer")
    before = view_of(opened(root))
    return before, view_over(before, opened(root).over([layer]), Touched.by([alone]), [alone])


def test_site_behind_a_symlink_is_where_the_symlink_leads_now(root: Path, tmp_path: Path) -> None:
    distribution(root / "opt/v1", "2.3")
    distribution(root / "opt/v2", "9.9")
    (root / "srv").mkdir()
    (root / "srv/site-packages").symlink_to("../opt/cur")
    (root / "opt/cur").symlink_to("v1")
    shutil.copytree(root, tmp_path / "after", symlinks=True)
    (tmp_path / "after/opt/cur").unlink()
    (tmp_path / "after/opt/cur").symlink_to("v2")
    before, after = viewed(root, tmp_path / "after")
    assert (versions(before), versions(after)) == ({"2.3"}, {"9.9"})


def test_metadata_behind_a_symlink_is_read_again(root: Path, tmp_path: Path) -> None:
    site = root / "opt/x/site-packages"
    distribution(site, "2.3")
    (site / "torch-2.3.dist-info/METADATA").rename(root / "opt/meta")
    (site / "torch-2.3.dist-info/METADATA").symlink_to("/opt/meta")
    shutil.copytree(root, tmp_path / "after", symlinks=True)
    (tmp_path / "after/opt/meta").write_text("Name: torch\nVersion: 9.9\n")
    before, after = viewed(root, tmp_path / "after")
    assert (versions(before), versions(after)) == ({"2.3"}, {"9.9"})
