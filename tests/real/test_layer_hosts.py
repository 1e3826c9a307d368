"""Layered builds on hosts that lack something: the right image, or one clear message."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.test_layer_check import CONFIGURED, owned, runtime

if TYPE_CHECKING:
    from tests.real.conftest import User

RECIPE = 'base = "../trial.sif"\npost = "echo {word} > /made; chown 12:34 /made"\n'


@pytest.fixture
def place(user: User, ground: Path, tiny_image: Path) -> Path:
    """A directory of the user with a base and a recipe."""
    path = ground / f"hosts-{time.monotonic_ns()}"
    path.mkdir()
    shutil.chown(path, user.name)
    owned(user, tiny_image, path)
    user.run("mkdir", "defs", cwd=path)
    user.run("tee", "defs/mine.toml", cwd=path, input=RECIPE.format(word=path.name))
    return path


def is_right(user: User, place: Path) -> bool:
    """Whether the image has what the recipe makes."""
    return user.ctk("run", "mine.sif", "cat", "/made", cwd=place).stdout == f"{place.name}\n"


def test_runtime_behind_a_link_called_singularity(user: User, place: Path) -> None:
    link = place / "singularity"
    link.symlink_to(shutil.which("apptainer") or "")
    (place / "site.toml").write_text(f'runtime = "{link}"\n')
    user.ctk("build", "mine", "--layered", cwd=place, env={"CTK_SITE": str(place / "site.toml")})
    assert is_right(user, place)


def test_kernel_s_overlay_alone(user: User, place: Path) -> None:
    """`enable overlay = driver`: the runtime does not fall back to FUSE."""
    driver = runtime(place, CONFIGURED, "driver")
    done = user.ctk("build", "mine", cwd=place, env=driver, status=None)
    assert done.returncode == 0, done.stderr
    assert ("It is a layered image" in done.stdout) is not ("It is a flat image: " in done.stdout), done.stdout
    assert is_right(user, place)


def test_host_without_mksquashfs_builds_flat_and_says_why(user: User, place: Path) -> None:
    """Apptainer finds the program in its own places."""
    programs = place / "programs"
    programs.mkdir()
    for directory in ("/usr/bin", "/usr/sbin", "/bin"):
        for path in Path(directory).iterdir():
            if path.name != "mksquashfs" and not (programs / path.name).is_symlink():
                (programs / path.name).symlink_to(path)
    without = {"PATH": str(programs)}
    refused = user.ctk("build", "mine", "--layered", cwd=place, env=without, status=3).stderr
    assert "there is no mksquashfs on this host (package squashfs-tools) [layers-not-usable]" in refused
    said = user.ctk("build", "mine", cwd=place, env=without).stdout
    assert "It is a flat image: there is no mksquashfs on this host" in said
    assert is_right(user, place)


@pytest.mark.parametrize(("options", "status"), [(("--layered",), 3), ((), 4)])
def test_user_without_subordinate_ids_learns_what_is_lost(
    ordinary_user: User, ground: Path, base_image: Path, options: tuple[str, ...], status: int
) -> None:
    assert os.geteuid() == 0, "only root can hide /etc/subuid"
    place = ground / f"subuid-{time.monotonic_ns()}"
    place.mkdir()
    shutil.chown(place, ordinary_user.name)
    owned(ordinary_user, base_image, place)
    (place / "empty").touch()
    (place / "defs").mkdir()
    (place / "defs/mine.toml").write_text(RECIPE.format(word="x"))
    shutil.chown(place / "defs", ordinary_user.name)
    shutil.chown(place / "defs/mine.toml", ordinary_user.name)
    hide = "".join(f"mount --bind {place}/empty {path}\n" for path in ("/etc/subuid", "/etc/subgid"))
    ctk = shlex.join(ordinary_user.command(ordinary_user.program, "build", "mine", *options))
    environment = {"CTK_HOME": str(place / "work")}
    words = ("unshare", "--mount", "sh", "-ec", f"{hide}exec {ctk}")
    me = type(ordinary_user)("root", ordinary_user.home, ordinary_user.program)
    done = me.run(*words, cwd=place, env={**ordinary_user.environment, **environment}, status=status)
    expected = "no line with 65536 ids for" if options else "this user has no subordinate IDs"
    assert expected in done.stderr
    assert not (place / "mine.sif").exists()
