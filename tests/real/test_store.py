"""Two users and one store: what the other user planted is not used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.store.making import put
from toolkit.store.store import Kind, Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

FIND = """
import pathlib, sys
from toolkit.store.store import Kind, open_store
from toolkit.support.paths import work_area
from toolkit.support.site import load_site
site = load_site()
store = open_store(work_area(site), site, print)
for kind, key in zip(Kind, sys.argv[1:]):
    entry = store.find(kind, key)
    print("found" if entry is not None and entry.path.read_bytes() else "none")
"""
NAMES = {Kind.BASE: "image.sif", Kind.LAYER: "layer.sqfs", Kind.PACKAGE: "six-1.whl"}
# What of an entry, or above it, belongs to the other user.
PLACES = ("", "KIND", "KIND/KEY", "KIND/KEY/entry.json", "KIND/KEY/CONTENT")


@pytest.fixture
def shared(ground: Path) -> Iterator[tuple[Store, list[str]]]:
    """A store of root's that everybody can read, with an entry of each kind; their keys."""
    store = Store(ground / f"shared-{os.urandom(4).hex()}")
    before = os.umask(0o022)
    keys = [put(store, NAMES[kind], kind).key for kind in Kind]
    os.umask(before)
    yield store, keys
    subprocess.run(["rm", "-rf", str(store.own)], check=True)


def found(user: User, keys: list[str], cwd: Path, **env: str) -> list[str]:
    done = user.run(user.program.with_name("python3"), "-c", FIND, *keys, cwd=cwd, env=env)
    return done.stdout.splitlines()


@pytest.mark.parametrize("place", PLACES)
def test_what_belongs_to_another_user_is_used_only_if_the_site_names_them(
    ordinary_user: User, second_user: User, shared: tuple[Store, list[str]], ground: Path, place: str
) -> None:
    store, keys = shared
    variables = {"CTK_STORE": str(store.own)}
    assert found(ordinary_user, keys, ground, **variables) == ["found"] * 3
    for kind, key in zip(Kind, keys, strict=True):
        path = place.replace("KIND", kind.value).replace("KEY", key).replace("CONTENT", NAMES[kind])
        shutil.chown(store.own / path, second_user.name)
    lines = found(ordinary_user, keys, ground, **variables)
    assert [line for line in lines if line in ("found", "none")] == ["none"] * 3
    assert sum(f"belongs to {second_user.name}" in line for line in lines) == 3
    site = ground / "owners.toml"
    site.write_text(f'store_owners = ["{second_user.name}"]\n')
    assert found(ordinary_user, keys, ground, CTK_SITE=str(site), **variables) == ["found"] * 3


@pytest.mark.parametrize("place", PLACES)
def test_where_others_can_write_nothing_is_used(
    ordinary_user: User, shared: tuple[Store, list[str]], ground: Path, place: str
) -> None:
    store, keys = shared
    for kind, key in zip(Kind, keys, strict=True):
        path = store.own / place.replace("KIND", kind.value).replace("KEY", key).replace("CONTENT", NAMES[kind])
        path.chmod(path.stat().st_mode | 0o022)
    lines = found(ordinary_user, keys, ground, CTK_STORE=str(store.own))
    assert [line for line in lines if line in ("found", "none")] == ["none"] * 3
    assert sum("others can write" in line for line in lines) == 3


def test_an_entry_that_another_user_planted_in_a_store_that_anybody_can_write(
    ordinary_user: User, second_user: User, shared: tuple[Store, list[str]], ground: Path
) -> None:
    """As a store on scratch with mode 1777, into which the other user copied entries that are whole."""
    store, keys = shared
    for kind in Kind:
        (store.own / kind).chmod(0o1777)
        second_user.run("cp", "-r", store.own / kind, second_user.home, cwd=ground)
        shutil.rmtree(store.own / kind / keys[list(Kind).index(kind)])
        second_user.run("sh", "-c", f"cp -r {second_user.home}/{kind}/* {store.own}/{kind}/", cwd=ground)
    lines = found(ordinary_user, keys, ground, CTK_STORE=str(store.own))
    assert [line for line in lines if line in ("found", "none")] == ["none"] * 3
    document = json.loads(
        ordinary_user.ctk("cache", "list", "--json", cwd=ground, env={"CTK_STORE": str(store.own)}).stdout
    )
    planted = [entry for entry in document["entries"] if entry["store"] == str(store.own)]
    assert len(planted) == 3
    assert all("others can write" in entry["problem"] for entry in planted)
    done = ordinary_user.ctk("cache", "verify", cwd=ground, env={"CTK_STORE": str(store.own)})
    assert done.stdout.count("[untrusted-entry]") == 3, "a warning: nothing of this user's own store is damaged"


def test_a_work_area_with_a_store_of_another_user_is_refused(
    ordinary_user: User, second_user: User, ground: Path
) -> None:
    area = ordinary_user.home / "planted"
    ordinary_user.run("mkdir", "-p", area / "store" / "layers", cwd=ground)
    shutil.chown(area / "store" / "layers", second_user.name)
    done = ordinary_user.ctk("cache", "list", cwd=ground, env={"CTK_HOME": str(area)}, status=3)
    assert f"{area}/store/layers belongs to {second_user.name}" in done.stderr


@pytest.mark.parametrize("option", ["--keep=0", "--older=1d"])
def test_a_full_home_is_pruned_and_nothing_else_is_lost(ordinary_user: User, ground: Path, option: str) -> None:
    """Not one more byte, file or directory can be written in the home, in which the work area and the settings are."""
    home = ground / f"full-{os.urandom(4).hex()}"
    home.mkdir()
    size = f"size=2m,mode=755,uid={ordinary_user.home.stat().st_uid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "none", str(home)], check=True)
    try:
        env = {"CTK_HOME": str(home / "ctk"), "HOME": str(home)}
        ordinary_user.run(ordinary_user.program.with_name("python3"), "-c", FILL, home, cwd=ground, env=env)
        before = ordinary_user.run("cat", home / "results", cwd=ground).stdout
        assert ordinary_user.run("sh", "-c", f"echo x > {home}/y", cwd=ground, status=None).returncode != 0
        done = ordinary_user.ctk("cache", "prune", option, cwd=ground, env=env)
        assert "Removed 3 entries" in done.stderr
        assert "Traceback" not in done.stderr
        assert ordinary_user.run("cat", home / "results", cwd=ground).stdout == before
        document = json.loads(ordinary_user.ctk("cache", "list", "--json", cwd=ground, env=env).stdout)
        assert [entry["about"]["name"] for entry in document["entries"]] == ["new"]
        ordinary_user.ctk("cache", "verify", cwd=ground, env=env)
    finally:
        subprocess.run(["umount", str(home)], check=True)


# Three old entries and one that was just used; then the disk is filled to the last byte.
FILL = """
import contextlib, os, pathlib, sys
from toolkit.store.store import Kind, Store
home = pathlib.Path(sys.argv[1])
(home / "ctk").mkdir(mode=0o700)
store = Store(home / "ctk" / "store")
for number, name in enumerate(["one", "two", "three", "new"]):
    with store.staging() as directory:
        (directory / name).write_bytes(bytes([number]) * 100_000)
        entry = store.publish(Kind.LAYER, f"{number}" * 64, directory / name, {"name": name})
    if name != "new":
        os.utime(entry.path.parent / "entry.json", (1, 1))
(home / "results").write_text("kept")
with contextlib.suppress(OSError), open(home / "filler", "wb", buffering=0) as filler:
    while True:
        filler.write(b"x" * 4096)
"""
