"""The architecture of an image on this machine, told without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pins.bases.foreign import FOREIGN, HOST, docker_archive, layout, sandbox
from toolkit.pins.bases import local
from toolkit.pins.bases.local import image_architecture, local_architectures, require_runnable
from toolkit.recipes.model import Base, Bootstrap
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def found(bootstrap: Bootstrap, path: Path) -> tuple[str, ...]:
    return local_architectures(Base("mine", bootstrap, str(path)))


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_architecture_of_each_form_is_read(tmp_path: Path, architecture: str) -> None:
    assert found(Bootstrap.LOCALIMAGE, sandbox(tmp_path / "sb", architecture)) == (architecture,)
    assert found(Bootstrap.DOCKER_ARCHIVE, docker_archive(tmp_path / "a.tar", architecture)) == (architecture,)
    assert found(Bootstrap.OCI, layout(tmp_path / "layout", architecture)) == (architecture,)


def test_layout_with_an_index_has_all_its_architectures(tmp_path: Path) -> None:
    assert found(Bootstrap.OCI, layout(tmp_path / "layout", "x86_64", "aarch64")) == ("x86_64", "aarch64")


def test_what_cannot_be_read_is_left_to_the_runtime(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"no image")
    (tmp_path / "empty/.singularity.d").mkdir(parents=True)
    broken = layout(tmp_path / "layout", "x86_64")
    (broken / "index.json").write_text('{"manifests": [{}]}')
    deep = layout(tmp_path / "deep", "x86_64")
    (deep / "index.json").write_text("[" * 100_000)
    packed = docker_archive(tmp_path / "a.tar.gz", mode="w:gz")
    for bootstrap in (Bootstrap.LOCALIMAGE, Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI):
        for path in (tmp_path / "file", tmp_path / "missing", tmp_path / "empty", broken, deep, packed):
            assert found(bootstrap, path) == ()


def test_foreign_image_is_run_only_with_an_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_EMULATORS", tmp_path)
    foreign, own = sandbox(tmp_path / "foreign"), sandbox(tmp_path / "own", HOST)
    assert image_architecture(foreign) == FOREIGN
    require_runnable(own)
    require_runnable(tmp_path)
    with pytest.raises(WrongInput, match=f"is for {FOREIGN}, and this host is {HOST}") as caught:
        require_runnable(foreign)
    assert caught.value.code == "wrong-architecture"
    (tmp_path / f"qemu-{FOREIGN}").touch()
    require_runnable(foreign)
