"""Builds of one user with a shared store of another, who planted whole entries with other content in it.

Each test builds once more with a site that names the owner: then what was planted is used, so it could have been.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.faulty_registry import busybox_layer, faulty_registry
from toolkit.builds.bases import base_key
from toolkit.inventory.formats.images import open_image
from toolkit.store.listing import entries_of
from toolkit.store.store import Kind, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faulty_registry import FaultyRegistry
    from tests.real.conftest import User

RECIPE = 'base = "docker://{}"\npost = "echo built > /opt/what"\n'
PLANTED = "planted\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyRegistry]:
    with faulty_registry(busybox_layer(tmp_path_factory.mktemp("layer"))) as found:
        yield found


@pytest.fixture
def project(ordinary_user: User, ground: Path, registry: FaultyRegistry) -> Iterator[Path]:
    """A directory of the user with one recipe and, in `area`, what its first build kept."""
    place = ground / f"planted-{os.urandom(4).hex()}"
    ordinary_user_owns(place, ordinary_user)
    ordinary_user.run("mkdir", "defs", cwd=place)
    ordinary_user.run("tee", "defs/demo.toml", cwd=place, input=RECIPE.format(registry.reference))
    ordinary_user.ctk("build", "demo", "--layered", cwd=place, env={"CTK_HOME": str(place / "area")})
    assert text_of(place / "demo.sif", "/opt/what") == "built\n"
    yield place
    subprocess.run(["rm", "-rf", str(place)], check=True)


def ordinary_user_owns(path: Path, user: User) -> None:
    path.mkdir()
    shutil.chown(path, user.name)


def text_of(image: Path, path: str) -> str | None:
    with open_image(image) as rootfs:
        return rootfs.read_text(path)


def planted(project: Path, attacker: User, kind: Kind, key: str, file: Path, about: dict[str, str]) -> Path:
    """A store of the attacker with one entry: all of it is as ctk itself would have written it."""
    store = Store(project / "theirs")
    store.publish(kind, key, file, about)
    subprocess.run(["chown", "-R", f"{attacker.name}:", str(store.own)], check=True)
    return store.own


def build(user: User, project: Path, store: Path, area: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Build again, with a new work area and the shared store `store`."""
    (project / "demo.sif").unlink()
    env = {"CTK_HOME": str(project / area), "CTK_STORE": str(store), **env}
    return user.ctk("build", "demo", "--layered", "--verbose", cwd=project, env=env)


def trusting_site(project: Path, attacker: User) -> str:
    site = project / "site.toml"
    site.write_text(f'store_owners = ["{attacker.name}"]\n')
    return str(site)


def test_a_planted_layer_never_reaches_an_image(
    ordinary_user: User, second_user: User, project: Path, tmp_path: Path
) -> None:
    """The right key, the right mark, the right hash, and another content."""
    kept = Store(project / "area" / "store")
    owner = frozenset({kept.own.stat().st_uid})
    (layer,) = (listed for listed in entries_of(kept.own, owner) if listed.kind is Kind.LAYER)
    unpack = ["unsquashfs", "-no-progress", "-quiet", "-dest", str(tmp_path / "tree")]
    subprocess.run([*unpack, str(layer.directory / "layer.sqfs")], check=True, capture_output=True)
    (tmp_path / "tree/opt/what").write_text(PLANTED)
    pack = ["mksquashfs", str(tmp_path / "tree"), str(tmp_path / "new.sqfs"), "-noappend", "-no-progress", "-quiet"]
    subprocess.run(pack, check=True)
    theirs = planted(project, second_user, Kind.LAYER, layer.key, tmp_path / "new.sqfs", dict(layer.about))
    build(ordinary_user, project, theirs, "area2")
    log = (project / "demo.sif.build.log").read_text()
    assert f"is not used: {theirs} belongs to {second_user.name}" in log
    assert text_of(project / "demo.sif", "/opt/what") == "built\n"
    build(ordinary_user, project, theirs, "area3", CTK_SITE=trusting_site(project, second_user))
    assert text_of(project / "demo.sif", "/opt/what") == PLANTED


def test_a_planted_base_is_pulled_again(
    ordinary_user: User, second_user: User, project: Path, me: User, registry: FaultyRegistry, tmp_path: Path
) -> None:
    sandbox, image = tmp_path / "root", tmp_path / "base.sif"
    me.run("apptainer", "build", "--fakeroot", "--sandbox", sandbox, project / "demo.sif", cwd=tmp_path)
    (sandbox / "opt/from").write_text(PLANTED)
    me.run("apptainer", "build", "--fakeroot", image, sandbox, cwd=tmp_path)
    key, asked = base_key(registry.digest), registry.asked["layer"]
    theirs = planted(project, second_user, Kind.BASE, key, image, {"digest": registry.digest})
    build(ordinary_user, project, theirs, "area2")
    assert text_of(project / "demo.sif", "/opt/from") is None
    assert registry.asked["layer"] == asked + 1
    build(ordinary_user, project, theirs, "area3", CTK_SITE=trusting_site(project, second_user))
    assert text_of(project / "demo.sif", "/opt/from") == PLANTED
    assert registry.asked["layer"] == asked + 1


@pytest.mark.parametrize("umask", ["022", "000"])
def test_a_lock_of_another_user_in_ones_own_store_does_not_hold_a_build_up(
    ordinary_user: User, second_user: User, project: Path, registry: FaultyRegistry, umask: str
) -> None:
    """The lock under which the base is pulled: the area that it lies in is refused, whatever mode it has."""
    area = project / "planted"
    ordinary_user.run("mkdir", "-p", area / "store/locks", cwd=project)
    lock = area / "store/locks" / f"{base_key(registry.digest)}.lock"
    lock.touch(mode=0o666 & ~int(umask, 8))
    shutil.chown(lock, second_user.name)
    (project / "demo.sif").unlink()
    env = {"CTK_HOME": str(area)}
    done = ordinary_user.ctk("build", "demo", cwd=project, env=env, status=3)
    assert f"{lock} belongs to {second_user.name}, not to you or root" in done.stderr
    assert not (project / "demo.sif").exists()
