"""`ctk build` where something is wrong: a full disk, a base that changes, two builds of one output, others' files."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import make_oci_layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User


@pytest.fixture
def own(ordinary_user: User, ground: Path) -> Iterator[Path]:
    """An empty directory of the ordinary user."""
    path = ground / f"build-{time.monotonic_ns()}"
    path.mkdir()
    shutil.chown(path, ordinary_user.name, ordinary_user.name)
    yield path
    subprocess.run(["rm", "-rf", str(path)], check=True)


def recipe(user: User, directory: Path, name: str, text: str) -> None:
    user.run("mkdir", "-p", "defs", cwd=directory)
    user.run("tee", f"defs/{name}.toml", cwd=directory, input=f'base = "debian-12"\n{text}')


@contextlib.contextmanager
def start(user: User, directory: Path, *arguments: str | Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A build that runs during the block; after it, it is ended."""
    words = user.command(user.program, "build", *arguments)
    environment = {**user.environment, **variables}
    with subprocess.Popen(words, cwd=directory, env=environment, stderr=subprocess.PIPE, text=True) as building:
        try:
            yield building
        finally:
            building.terminate()


def wait_for_post(log: Path) -> None:
    deadline = time.monotonic() + 30
    while not (log.exists() and "\nctk: running the post script of the recipe\n" in log.read_text()):
        assert time.monotonic() < deadline, log
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("full", "words", "fix"),
    [("out", "no space left for the image in ", "with -o"), ("work", "no space left for the build in ", "CTK_HOME")],
)
def test_a_disk_that_becomes_full_is_named_with_its_own_advice(
    ordinary_user: User, own: Path, tiny_image: Path, full: str, words: str, fix: str
) -> None:
    """Two small file systems, for the output and for the work area; one becomes full while the build runs."""
    go = own / "go"  # a build sees /tmp
    post = f"until [ -e {go} ]; do sleep 0.1; done; busybox head -c 20000000 /dev/urandom > /opt/x"
    recipe(ordinary_user, own, "big", f'post = "{post}"\n')
    mounted = [own / "out", own / "work"]
    for place in mounted:
        place.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size=1100m,mode=755,uid={own.stat().st_uid}", "none", place], check=True
        )
    try:
        arguments = ("big", "--base", tiny_image, "-o", "out/big.sif")
        with start(ordinary_user, own, *arguments, CTK_HOME=str(own / "work")) as building:
            wait_for_post(own / "out/big.sif.build.log")
            with (own / full / "filler").open("wb") as filler:
                free = os.statvfs(own / full)
                os.posix_fallocate(filler.fileno(), 0, free.f_bavail * free.f_frsize - 100_000)
            go.touch()
            said = building.communicate(timeout=60)[1]
        assert building.returncode == 4, said
        assert words in said
        assert str(own / full) in said
        assert fix in said
        assert ("CTK_HOME" in said) is (full == "work"), "no advice for the other disk"
        assert sorted(path.name for path in (own / "out").iterdir() if path.name != "filler") == ["big.sif.build.log"]
    finally:
        for place in mounted:
            subprocess.run(["umount", place], check=True)


def fill(disk: Path, left: int) -> None:
    """Fill a disk up to `left` bytes, while another process may write to it."""
    with (disk / "filler").open("wb") as filler:
        while True:
            state = os.statvfs(disk)
            try:
                os.posix_fallocate(filler.fileno(), 0, max(1, state.f_bavail * state.f_frsize - left))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                left += 1_000_000
            else:
                return


@pytest.mark.parametrize("seed", range(int(os.environ.get("CTK_FULL_DISKS", "2"))))
def test_a_disk_that_becomes_full_at_any_moment_leaves_the_old_image(
    seed: int, ordinary_user: User, own: Path, tiny_image: Path
) -> None:
    """The output's disk or that of the work area, in turn; then the next build works, and nothing is left behind."""
    random = Random(seed)  # noqa: S311 - which moment is no secret
    recipe(ordinary_user, own, "big", 'post = "busybox head -c 3000000 /dev/urandom > /opt/x"\n')
    full = own / ("out", "work")[seed % 2]
    full.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size=1100m,mode=755,uid={own.stat().st_uid}", "none", full]
    subprocess.run(mount, check=True)
    ordinary_user.run("mkdir", "-p", "out", "work", cwd=own)
    arguments, home = ("big", "--base", tiny_image, "-o", "out/big.sif", "--force"), str(own / "work")
    try:
        ordinary_user.ctk("build", *arguments, cwd=own, env={"CTK_HOME": home})
        before = (own / "out/big.sif").read_bytes()
        with start(ordinary_user, own, *arguments, CTK_HOME=home) as building:
            time.sleep(random.uniform(0.4, 2.5))
            fill(full, random.randrange(4096, 3_000_000))
            said = building.communicate(timeout=60)[1]
        assert building.returncode in (0, 3, 4), said
        assert "Traceback" not in said
        if building.returncode:
            assert (own / "out/big.sif").read_bytes() == before
        (full / "filler").unlink()
        assert {path.name for path in (own / "out").iterdir()} == {"big.sif", "big.sif.build.log"}
        assert not any((own / "work/tmp").iterdir())
        ordinary_user.ctk("build", *arguments, cwd=own, env={"CTK_HOME": home})
        ordinary_user.run("apptainer", "exec", "out/big.sif", "busybox", "test", "-s", "/opt/x", cwd=own)
    finally:
        subprocess.run(["umount", full], check=True)


@pytest.mark.parametrize("way", ["a symlinked directory", "another CTK_HOME and HOME"])
def test_two_builds_of_one_output_exclude_each_other_by_every_path(
    ordinary_user: User, own: Path, tiny_image: Path, way: str
) -> None:
    recipe(ordinary_user, own, "slow", f'post = "sleep 6 # {own.name}"\n')
    ordinary_user.run("sh", "-c", "mkdir out other home2 && ln -s out link", cwd=own)
    output, variables = "out/slow.sif", {}
    if way == "a symlinked directory":
        output = "link/slow.sif"
    else:
        variables = {"CTK_HOME": str(own / "other"), "HOME": str(own / "home2")}
    with start(ordinary_user, own, "slow", "--base", tiny_image, "-o", "out/slow.sif") as first:
        wait_for_post(own / "out/slow.sif.build.log")
        second = ordinary_user.ctk(
            *("build", "slow", "--base", tiny_image, "-o", output, "--json"), cwd=own, env=variables, status=2
        )
        assert first.poll() is None, "the second one does not wait"
        assert "another ctk build is writing" in second.stderr
        said = first.communicate(timeout=60)[1]
    assert first.returncode == 0, said
    assert sorted(path.name for path in (own / "out").iterdir()) == ["slow.sif", "slow.sif.build.log"]
    assert "+ sleep 6" in (own / "out/slow.sif.build.log").read_text().splitlines(), "the log is the first one's"


def test_a_killed_build_does_not_hold_its_output(ordinary_user: User, own: Path, tiny_image: Path) -> None:
    recipe(ordinary_user, own, "slow", f'post = "sleep 6 # {own.name}"\n')
    with start(ordinary_user, own, "slow", "--base", tiny_image) as first:
        wait_for_post(own / "slow.sif.build.log")
        first.kill()
    ordinary_user.ctk("build", "slow", "--base", tiny_image, cwd=own)
    assert sorted(path.name for path in own.iterdir()) == ["defs", "slow.sif", "slow.sif.build.log"]


@pytest.mark.parametrize("others", ["mine.sif", "mine.sif.build.log", "sb.ctk.json", "sb"])
def test_what_belongs_to_another_user_in_a_sticky_directory_is_refused_before_the_build(
    ordinary_user: User, second_user: User, own: Path, tiny_image: Path, others: str
) -> None:
    recipe(ordinary_user, own, "mine", 'post = "touch /opt/built"\n')
    shared = own / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    kind = ("--sandbox", "-o", "shared/sb/") if others.startswith("sb") else ("-o", "shared/mine.sif")
    # Made by ctk from the same recipe and readable by all: only its owner is wrong.
    ordinary_user.ctk("build", "mine", "--base", tiny_image, *kind, cwd=own)
    subprocess.run(["chown", "-R", second_user.name, shared / others], check=True)
    recipe(ordinary_user, own, "mine", 'post = "touch /opt/other"\n')
    before = {path.name: path.lstat().st_mtime_ns for path in shared.iterdir()}
    for force in ((), ("--force",)):
        done = ordinary_user.ctk("build", "mine", "--base", tiny_image, *kind, *force, "--json", cwd=own, status=2)
        assert f"{shared / others} belongs to {second_user.name}" in done.stderr
        assert "preparing the base" not in done.stderr
    assert {path.name: path.lstat().st_mtime_ns for path in shared.iterdir()} == before


@pytest.mark.parametrize("way", ["a closed directory", "an immutable directory", "an immutable image"])
def test_what_cannot_be_written_is_refused_before_the_build(
    ordinary_user: User, own: Path, tiny_image: Path, way: str
) -> None:
    recipe(ordinary_user, own, "mine", "")
    ordinary_user.run("mkdir", "out", cwd=own)
    arguments = ("build", "mine", "--base", tiny_image, "-o", "out/mine.sif")
    ordinary_user.ctk(*arguments, cwd=own)
    recipe(ordinary_user, own, "mine", 'post = "true"\n')
    target = own / "out" / ("mine.sif" if way == "an immutable image" else "")
    undo = ["chattr", "-i", target]
    if way == "a closed directory":
        target.chmod(0o555)
    else:
        subprocess.run(["chattr", "+i", target], check=True)
    try:
        done = ordinary_user.ctk(*arguments, cwd=own, status=2)
    finally:
        subprocess.run(undo, check=True)
    assert ("is immutable" if way == "an immutable image" else f"cannot write to {own}/out") in done.stderr
    assert "preparing the base" not in done.stderr
    assert sorted(path.name for path in (own / "out").iterdir()) == ["mine.sif", "mine.sif.build.log"]


# What a neighbour, or another command of the same user, does to `base` and `other` in the middle of a build.
SWAPS = {
    "a rename": "mv other base",
    "a write in place": "cat other > base",
    "a link": 'ln -sf "$PWD/other" base',
    "the times set back": "cp other new && touch -r base new && mv new base",
    "there and back": "cp -p base kept && mv other base && {run}; status=$?; mv kept base; exit $status",
}


def runtime_that_swaps(user: User, directory: Path, swap: str, when: str) -> str:
    """A PATH whose apptainer swaps the base at the first build that reads it, and is the real one otherwise."""
    real = shutil.which("apptainer")
    run = f'{real} "$@"'
    between = f"cd {directory} && {swap.format(run=run)}"
    steps = {"before": f"({between}) && exec {run}", "after": f"{run} && ({between})"}
    body = f"({between})" if "{run}" in swap else steps[when]
    once = f"[ -e {directory}/swapped ] || {{ touch {directory}/swapped; {body}; exit; }}"
    script = f'#!/bin/sh\ncase "$1" in build) {once};; esac\n'
    user.run("mkdir", "bin", cwd=directory)
    user.run("tee", "bin/apptainer", cwd=directory, input=f"{script}exec {run}\n")
    user.run("chmod", "+x", "bin/apptainer", cwd=directory)
    return f"{directory}/bin:{os.environ['PATH']}"


@pytest.mark.parametrize(("way", "when"), [*((way, "before") for way in SWAPS), ("a rename", "after")])
def test_an_image_is_never_made_from_a_base_that_changed(
    ordinary_user: User, own: Path, tiny_image: Path, way: str, when: str
) -> None:
    recipe(ordinary_user, own, "mine", 'post = "touch /opt/built"\n')
    ordinary_user.run("cp", tiny_image, "base", cwd=own)
    ordinary_user.run("sh", "-c", "cp base other && printf x >> other", cwd=own)
    path = runtime_that_swaps(ordinary_user, own, SWAPS[way], when)
    arguments = ("build", "mine", "--base", own / "base", "--json")
    done = ordinary_user.ctk(*arguments, cwd=own, env={"PATH": path}, status=1)
    assert f"the base {own}/base changed while ctk read it" in done.stderr
    assert not (own / "mine.sif").exists()
    assert not list(own.glob(".ctk-work-*"))
    ordinary_user.ctk(*arguments, cwd=own, env={"PATH": path})


@pytest.mark.parametrize("form", ["docker-archive", "oci"])
def test_an_archive_that_changes_is_not_kept_under_the_digest_of_another(
    ordinary_user: User, own: Path, ground: Path, tiny_image: Path, form: str
) -> None:
    """The base is brought into the work area first, where its digest names it: an exchange then must not be kept."""
    recipe(ordinary_user, own, "mine", 'post = "touch /opt/built"\n')
    ordinary_user.run("cp", "-r", make_oci_layout(ground, ground / "tiny"), "layout", cwd=own)
    if form == "oci":
        ordinary_user.run("mv", "layout", "base", cwd=own)
        name, swap = "oci:base:t", "cp -r base new && mv base old && mv new base"
    else:
        ordinary_user.run("skopeo", "copy", "--quiet", "oci:layout:t", "docker-archive:base:tiny:latest", cwd=own)
        name, swap = "docker-archive:base", "cp base new && mv new base"
    path = runtime_that_swaps(ordinary_user, own, swap, "before")
    variables = {"PATH": path, "CTK_HOME": str(own / "work")}
    done = ordinary_user.ctk("build", "mine", "--base", name, cwd=own, env=variables, status=1)
    assert "changed while ctk read it" in done.stderr
    assert not list((own / "work" / "bases").glob("*"))
    ordinary_user.ctk("build", "mine", "--base", name, cwd=own, env=variables)
