"""What a build puts into a step's tree besides its changes, and what no layer may change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.builds.layers.trees import lower
from toolkit.builds.layers.copies import find_specials
from toolkit.builds.layers.copying import resolve
from toolkit.builds.layers.finishing import finish_tree, refuse_reserved, write_script
from toolkit.builds.layers.normalise import CannotNormalise
from toolkit.definitions.places import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

BUILT = {".singularity.d/actions/": ""}
ACCOUNTS = {"etc/passwd": "root:x:0:0\n", "etc/group": "root:x:0:\n"}


@pytest.mark.parametrize("name", [".post.script", ".ctk-files/1/data", ".singularity.d", ".singularity.d/actions"])
@pytest.mark.parametrize("content", ["-> /host", "a file"])
def test_base_with_a_reserved_path_is_refused(tmp_path: Path, name: str, content: str) -> None:
    tree = {name: content, **({} if name.startswith(".singularity.d") else BUILT)}
    with pytest.raises(CannotNormalise, match=name.split("/")[0]):
        refuse_reserved(lower(tmp_path, tree), ["/.ctk-files/1/data"])


@pytest.mark.parametrize("tree", [{}, {".singularity.d/env/": ""}])
def test_base_that_no_runtime_built_is_refused(tmp_path: Path, tree: dict[str, str]) -> None:
    with pytest.raises(CannotNormalise, match="as an image that the runtime built has"):
        refuse_reserved(lower(tmp_path, {"bin/sh": "", **tree}), [])


def test_ordinary_base_and_unused_staging_are_not_refused(tmp_path: Path) -> None:
    refuse_reserved(lower(tmp_path, {".ctk-files/x": "", **BUILT}), ["/tmp/x"])


def test_forty_symlinks_are_followed_and_no_more(tmp_path: Path) -> None:
    found = lower(tmp_path, {f"s{number}": f"-> s{number + 1}" for number in range(41)})
    assert resolve(found, "/s1/x") == "s41/x"
    with pytest.raises(CannotNormalise, match="more than 40 symlinks"):
        resolve(found, "/s0/x")


@pytest.mark.parametrize("name", ["user.overlay.opaque", "user.fuseoverlayfs.opaque", "user.overlay.redirect"])
@pytest.mark.parametrize("where", ["d", ""])
def test_notes_of_an_overlay_in_a_base_are_refused(tmp_path: Path, name: str, where: str) -> None:
    (tmp_path / "0/d").mkdir(parents=True)
    os.setxattr(tmp_path / "0" / where, name, b"y")
    with pytest.raises(CannotNormalise, match=name):
        find_specials(lower(tmp_path, {}), tmp_path)


def made(tmp_path: Path) -> Path:
    upper = tmp_path / "upper"
    for directory in (upper, upper / ".singularity.d", upper / "etc"):
        directory.mkdir(mode=0o755)
    return upper


@pytest.mark.parametrize("name", ["passwd", "group"])
@pytest.mark.parametrize("change", ["content", "symlink", "whiteout", "directory", "parent"])
def test_changed_accounts_are_refused(tmp_path: Path, name: str, change: str) -> None:
    found, upper = lower(tmp_path / "low", ACCOUNTS), made(tmp_path)
    path = upper / "etc" / name
    if change == "content":
        path.write_text("more\n")
    elif change == "symlink":
        path.symlink_to("other")
    elif change == "directory":
        path.mkdir()
    elif change == "whiteout":
        os.mknod(path, 0o020000, os.makedev(0, 0))
    else:
        path.parent.rmdir()
        path.parent.write_text("")
    with pytest.raises(CannotNormalise, match=r"changes /etc/\w+, which the runtime takes from the base"):
        finish_tree(str(upper), found, {}, {})


def test_accounts_with_another_mode_alone_are_a_layer(tmp_path: Path) -> None:
    found, upper = lower(tmp_path / "low", ACCOUNTS), made(tmp_path)
    (upper / "etc/passwd").write_text(ACCOUNTS["etc/passwd"])
    (upper / "etc/passwd").chmod(0o640)
    name = finish_tree(str(upper), found, {}, {})
    assert name is not None
    assert (upper / ".singularity.d" / name).stat().st_mode & 0o777 == 0o444


def test_script_and_collected_labels_are_no_part_of_a_layer(tmp_path: Path) -> None:
    found, upper = lower(tmp_path / "low", ACCOUNTS), made(tmp_path)
    write_script(str(upper), "true \udce4")
    assert (upper / SCRIPT[1:]).read_bytes() == b"true \xe4\n"
    (upper / ".build.labels").symlink_to(tmp_path / "nowhere")
    name = finish_tree(str(upper), found, {}, {"/.singularity.d/labels.json": b"{}"})
    assert name is not None
    assert sorted(path.name for path in upper.iterdir()) in ([".singularity.d"], [".singularity.d", "etc"])
    assert (upper / ".singularity.d/labels.json").read_bytes() == b"{}"
