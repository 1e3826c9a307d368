"""Two users on one machine: neither a cloned repository nor a neighbour harms what ctk's user owns."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

RECIPE = 'base = "debian-12"\n'
WORDS = "export MINE=1\n"


@pytest.fixture
def clone(ordinary_user: User, ground: Path) -> Iterator[Path]:
    """A repository that somebody else wrote, cloned below a home: `../.bash_profile` is the user's own."""
    home = ground / f"clone-{time.monotonic_ns()}"
    project = home / "project"
    home.mkdir()
    shutil.chown(home, ordinary_user.name)
    ordinary_user.run("mkdir", "-p", "project/defs", cwd=home)
    ordinary_user.run("tee", ".bash_profile", cwd=home, input=WORDS)
    ordinary_user.run("tee", "defs/demo.toml", cwd=project, input=RECIPE)
    ordinary_user.run("tee", "defs/more.toml", cwd=project, input=f'{RECIPE}packages = ["six"]\n')
    yield project
    shutil.rmtree(home)


@pytest.fixture
def shared(ground: Path) -> Iterator[Path]:
    """A directory as /tmp is: everybody can write there, and only remove what is theirs."""
    path = ground / f"shared-{time.monotonic_ns()}"
    path.mkdir()
    path.chmod(0o1777)
    yield path
    shutil.rmtree(path)


PLANTED = {
    "a log": ("demo.sif.build.log", ("build", "demo", "--base", "TINY")),
    "a log, by force": ("demo.sif.build.log", ("build", "demo", "--base", "TINY", "--force")),
    "a sandbox's log": ("sb.build.log", ("build", "demo", "--base", "TINY", "--sandbox", "-o", "sb/")),
    "a sandbox's record": ("sb.ctk.json", ("build", "demo", "--base", "TINY", "--sandbox", "-o", "sb/", "--force")),
    "a lock": ("defs/more.lock.toml", ("lock", "more")),
    "the lock of a build": ("defs/more.lock.toml", ("build", "more")),
    "the lock of a definition": ("defs/more.lock.toml", ("def", "more")),
    "a script": ("job.sbatch", ("sbatch", "--image", "TINY", "--job-name", "job", "--", "true")),
    "a script, by force": ("job.sbatch", ("sbatch", "--force", "--image", "TINY", "--job-name", "job", "--", "true")),
    "a report": ("ticket.txt", ("doctor", "--report", "ticket.txt", "--force")),
    "a recipe": ("defs/fresh.toml", ("new", "fresh", "--base", "debian-12", "--force")),
    "a recipe to change": ("defs/fresh.toml", ("add", "fresh", "six")),
}


@pytest.mark.parametrize("there", [True, False], ids=["file", "dangling"])
@pytest.mark.parametrize("case", PLANTED)
def test_nothing_is_written_through_a_link_of_a_clone(
    ordinary_user: User, clone: Path, tiny_image: Path, case: str, there: bool
) -> None:
    name, command = PLANTED[case]
    target = clone.parent / (".bash_profile" if there else ".profile")
    link = clone / name
    link.symlink_to(os.path.relpath(target, link.parent))
    words = [str(tiny_image) if word == "TINY" else word for word in command]
    done = ordinary_user.ctk(*words, cwd=clone, status=2)
    if case != "a recipe to change":  # what is no recipe is not even read as one
        assert f"{link.name} is a symlink to {target}" in done.stderr
    assert target.read_text() == WORDS if there else not target.exists()
    assert link.is_symlink()


def test_a_recipe_that_is_shared_by_a_link_is_changed_and_settings_of_other_programs_are_not(
    ordinary_user: User, clone: Path
) -> None:
    ordinary_user.run("tee", "common.toml", cwd=clone.parent, input=RECIPE)
    ordinary_user.run("tee", "settings.toml", cwd=clone.parent, input="[cargo]\nx = 1\n")
    for name in ("common", "settings"):
        (clone / f"defs/{name}.toml").symlink_to(f"../../{name}.toml")
    ordinary_user.ctk("add", "common", "six", cwd=clone)
    assert "six" in (clone.parent / "common.toml").read_text()
    assert (clone / "defs/common.toml").is_symlink()
    refused = ordinary_user.ctk("add", "settings", "six", cwd=clone, status=2)
    assert "defs/settings.toml" in refused.stderr
    assert (clone.parent / "settings.toml").read_text() == "[cargo]\nx = 1\n"


def test_an_image_goes_through_a_link_only_to_a_new_image_or_one_of_ctks(
    ordinary_user: User, clone: Path, tiny_image: Path
) -> None:
    home, link = clone.parent, clone / "demo.sif"
    build = ("build", "demo", "--base", tiny_image)
    for target in (".bash_profile", ".profile"):
        link.symlink_to(f"../{target}")
        for force in ((), ("--force",)):
            refused = ordinary_user.ctk(*build, *force, cwd=clone, status=2)
            assert f"{link} is a symlink to {home}/{target}, " in refused.stderr
        link.unlink()
    assert (home / ".bash_profile").read_text() == WORDS
    assert not (home / ".profile").exists()
    link.symlink_to("../scratch.sif")
    for more in ((), ("--force",)):  # a new image, then one that ctk built
        done = ordinary_user.ctk(*build, *more, cwd=clone)
        assert f"{link} is a symlink: the image is written to {home}/scratch.sif.\n" in done.stderr
        assert done.stderr.index("is a symlink:") < done.stderr.index("ctk: ")
    assert link.is_symlink()
    assert (home / "scratch.sif").is_file()


def test_a_link_that_a_neighbour_planted_as_an_output_is_refused(
    ordinary_user: User, second_user: User, shared: Path, clone: Path, tiny_image: Path
) -> None:
    second_user.run("ln", "-s", clone.parent / "new.sif", shared / "demo.sif", cwd=shared)
    build = ("build", "demo", "--base", tiny_image, "-o", shared / "demo.sif", "--force")
    assert f"created by {second_user.name}" in ordinary_user.ctk(*build, cwd=clone, status=2).stderr
    assert not (clone.parent / "new.sif").exists()


def test_a_hard_link_that_a_neighbour_planted_as_a_log_is_refused(
    ordinary_user: User, shared: Path, clone: Path, tiny_image: Path
) -> None:
    """Where fs.protected_hardlinks is 0 anybody can give another user's file a second name."""
    before = clone.parent / "notes"
    ordinary_user.run("tee", before, cwd=clone, input="# ctk build log: mine\n")
    os.link(before, shared / "demo.sif.build.log")
    build = ("build", "demo", "--base", tiny_image, "-o", shared / "demo.sif", "--force")
    assert "has more than one hard link" in ordinary_user.ctk(*build, cwd=clone, status=2).stderr
    assert before.read_text() == "# ctk build log: mine\n"


def test_a_neighbour_s_lock_on_the_log_does_not_hold_a_build_up(
    ordinary_user: User, second_user: User, shared: Path, clone: Path, tiny_image: Path
) -> None:
    """flock(2) needs no more than to read the file."""
    build = ("build", "demo", "--base", tiny_image, "-o", shared / "demo.sif")
    ordinary_user.ctk(*build, cwd=clone)
    hold = f"exec 9<{shared}/demo.sif.build.log; flock 9; echo held; read -r _"
    words = second_user.command("sh", "-c", hold)
    with subprocess.Popen(words, cwd=shared, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        ordinary_user.ctk(*build, cwd=clone)
        holder.communicate(b"\n")


def plant(second_user: User, shared: Path, victim: Path) -> list[Path]:
    """Whatever looks like a build's leftover and is none, in a shared directory."""
    prefix = f"{shared}/.ctk-work-{socket.gethostname()}-"
    script = f"""
        mkdir -m 755 {prefix}closed {prefix}directory {prefix}fifo {prefix}link {prefix}free
        touch {prefix}closed/lock {prefix}free/lock; chmod 000 {prefix}closed/lock; chmod 666 {prefix}free/lock
        mkdir {prefix}directory/lock
        mkfifo -m 666 {prefix}fifo/lock
        ln -s {victim}/lock {prefix}link/lock
        ln -s {victim} {prefix}victim
        touch {prefix}file; mkfifo -m 666 {prefix}pipe; ln -s /nowhere {prefix}dangling
    """
    second_user.run("sh", "-euc", script, cwd=shared)
    return sorted(Path(shared).glob(".ctk-work-*"))


def modes(directory: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mode for path in [directory, *sorted(directory.rglob("*"))]}


@pytest.mark.parametrize("places", ["output", "TMPDIR", "APPTAINER_TMPDIR"])
def test_planted_leftovers_neither_end_a_build_nor_touch_the_users_files(
    ordinary_user: User, second_user: User, shared: Path, clone: Path, tiny_image: Path, places: str
) -> None:
    victim = clone.parent / "results"
    ordinary_user.run("sh", "-euc", "mkdir -p results/kept/deep; touch results/lock results/kept/deep/data; "
                      "chmod 500 results/kept/deep; chmod 555 results/kept results", cwd=clone.parent)  # fmt: skip
    planted, before = plant(second_user, shared, victim), modes(victim)
    output = shared / "demo.sif" if places == "output" else clone / "demo.sif"
    settings = {} if places == "output" else {places: str(shared)}
    done = ordinary_user.ctk("build", "demo", "--base", tiny_image, "-o", output, cwd=clone, env=settings, timeout=100)
    assert output.is_file()
    assert ".ctk-work" not in done.stderr, "others' leftovers are nobody's business"
    assert sorted(shared.glob(".ctk-work-*")) == planted
    assert modes(victim) == before
    ordinary_user.run("chmod", "-R", "u+w", victim, cwd=clone)


def test_a_dead_builds_leftover_of_another_user_stays_even_for_root(
    me: User, ordinary_user: User, shared: Path, clone: Path, tiny_image: Path
) -> None:
    left = shared / f".ctk-work-{socket.gethostname()}-dead"
    ordinary_user.run("sh", "-euc", f"mkdir -m 700 {left}; touch {left}/lock", cwd=shared)
    me.ctk("build", "demo", "--base", tiny_image, "-o", shared / "root.sif", cwd=clone)
    assert left.is_dir()
    ordinary_user.ctk("build", "demo", "--base", tiny_image, "-o", shared / "demo.sif", cwd=clone)
    assert not left.exists()


# --- the work area


COMMANDS = {
    "build": ("build", "demo", "--base", "TINY"),
    "lock": ("lock", "more"),
    "def": ("def", "more"),
    "inspect": ("inspect", "TINY"),
    "shell": ("shell", "TINY", "--", "true"),
}


def test_recipe_of_another_user_is_used_with_a_warning_that_names_the_user(
    ordinary_user: User, second_user: User, shared: Path, tiny_image: Path
) -> None:
    second_user.run("mkdir", "-m", "755", "defs", cwd=shared)
    second_user.run("tee", "defs/demo.toml", cwd=shared, input=RECIPE)
    words = f"{shared}/defs and 1 other file of the recipe belong to {second_user.name}, not to you or root"
    for command in (
        ("def", "demo"),
        ("build", "demo", "--dry-run", "--base", "TINY"),
        ("build", "demo", "--base", "TINY"),
    ):
        options = [tiny_image if word == "TINY" else word for word in command]
        done = ordinary_user.ctk(*options, "--json", cwd=shared)
        assert done.stderr.count(words) == 1
        found = [finding for finding in json.loads(done.stdout)["findings"] if words in finding["message"]]
        assert [finding["code"] for finding in found] == ["recipe-of-another-user"]
    assert ordinary_user.ctk("lock", "demo", "--check", cwd=shared, status=None).stderr.count(words) == 1
    ordinary_user.run("cp", "-r", "defs", "mine", cwd=shared)
    ordinary_user.run("mkdir", "project", cwd=shared)
    ordinary_user.run("mv", "mine", "project/defs", cwd=shared)
    assert "belong" not in ordinary_user.ctk("def", "demo", cwd=shared / "project").stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_work_area_of_another_user_is_not_used(
    ordinary_user: User, second_user: User, shared: Path, clone: Path, tiny_image: Path, command: str
) -> None:
    area = shared / "ctk"
    made = f"umask 0; mkdir -p {area}/uv {area}/bases {area}/cache {area}/tmp; cp /bin/false {area}/uv/uv"
    second_user.run("sh", "-euc", made, cwd=shared)
    words = [str(tiny_image) if word == "TINY" else word for word in COMMANDS[command]]
    done = ordinary_user.ctk(*words, cwd=clone, env={"CTK_HOME": "", "SCRATCH": str(shared)}, status=3)
    assert f"{area} belongs to {second_user.name}, not to you or root" in done.stderr
    assert "Set CTK_HOME" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((area / "cache").iterdir())


@pytest.mark.parametrize(
    "planted",
    [
        *("uv/uv", "bases/0123.sif", "cache/locks/0123.lock.toml"),
        *(f"store/{name}/{'0' * 64}" for name in ("bases", "layers", "packages", "digests", "locks", "images")),
    ],
)
def test_a_file_of_another_user_in_the_area_is_not_used(
    ordinary_user: User, second_user: User, shared: Path, clone: Path, tiny_image: Path, planted: str
) -> None:
    """The area was open to everybody, and somebody used it."""
    area = shared / "area"
    parent = (area / planted).parent
    ordinary_user.run("sh", "-euc", f"umask 0; mkdir -p {parent}", cwd=shared)
    second_user.run("touch", area / planted, cwd=shared)
    settings = {"CTK_HOME": str(area)}
    done = ordinary_user.ctk("build", "demo", "--base", tiny_image, cwd=clone, env=settings, status=3)
    assert f"{area / planted} belongs to {second_user.name}" in done.stderr
    assert parent.stat().st_mode & 0o022, "what is not trusted is not changed either"
    told = ordinary_user.ctk("doctor", cwd=clone, env=settings, status=3).stdout
    assert f"{area / planted} belongs to {second_user.name}" in told


def test_ones_own_open_area_is_tightened_and_reported_once(
    ordinary_user: User, shared: Path, clone: Path, tiny_image: Path
) -> None:
    area = shared / "area"
    ordinary_user.run("sh", "-euc", f"umask 0; mkdir -p {area}/cache {area}/bases", cwd=shared)
    settings = {"CTK_HOME": str(area)}
    told = ordinary_user.ctk("doctor", cwd=clone, env=settings).stdout
    assert f"Work area: others can write to {area}, {area}/bases, {area}/cache." in told
    assert area.stat().st_mode & 0o777 == 0o777, "doctor only looks"
    first = ordinary_user.ctk("inspect", tiny_image, cwd=clone, env=settings).stderr
    assert f"others could write to {area}, {area}/bases, {area}/cache;" in first
    assert {path.stat().st_mode & 0o777 for path in (area, area / "bases", area / "cache")} == {0o755}
    assert "others" not in ordinary_user.ctk("inspect", tiny_image, cwd=clone, env=settings).stderr
    assert "others" not in ordinary_user.ctk("doctor", cwd=clone, env=settings).stdout


def test_a_new_area_is_closed_to_others(ordinary_user: User, shared: Path, clone: Path, tiny_image: Path) -> None:
    area = shared / "new"
    command = f"umask 0; exec {ordinary_user.program} build demo --base {tiny_image}"
    ordinary_user.run("sh", "-c", command, cwd=clone, env={"CTK_HOME": str(area)})
    assert {path.stat().st_mode & 0o777 for path in (area, area / "bases", area / "cache", area / "uv")} == {0o700}
    assert "others" not in ordinary_user.ctk("inspect", tiny_image, cwd=clone, env={"CTK_HOME": str(area)}).stderr


def test_the_area_of_a_user_is_not_used_by_root(me: User, ordinary_user: User, shared: Path, clone: Path) -> None:
    area = shared / "area"
    ordinary_user.run("mkdir", area, cwd=shared)
    done = me.ctk("def", "more", cwd=clone, env={"CTK_HOME": str(area)}, status=3)
    assert f"{area} belongs to {ordinary_user.name}" in done.stderr


def test_an_area_behind_a_link_of_another_user_is_not_used(
    ordinary_user: User, second_user: User, shared: Path, clone: Path
) -> None:
    """The link may lead into the user's own files, where ctk would work and change modes."""
    second_user.run("ln", "-s", clone.parent, shared / "ctk", cwd=shared)
    before = clone.parent.stat().st_mode
    settings = {"CTK_HOME": "", "SCRATCH": str(shared)}
    done = ordinary_user.ctk("def", "more", cwd=clone, env=settings, status=3)
    assert f"{shared}/ctk belongs to {second_user.name}" in done.stderr
    assert sorted(path.name for path in clone.parent.iterdir()) == [".bash_profile", "project"]
    assert clone.parent.stat().st_mode == before
    own = shared / "own"
    ordinary_user.run("sh", "-euc", f"mkdir {own}-there; ln -s {own}-there {own}", cwd=shared)
    ordinary_user.ctk("inspect", "nothing.sif", cwd=clone, env={"CTK_HOME": str(own)}, status=2)
    assert (
        "work-area-not-trusted"
        not in ordinary_user.ctk("doctor", "--json", cwd=clone, env={"CTK_HOME": str(own)}).stdout
    )


def test_an_area_of_the_site_is_one_for_each_user(
    ordinary_user: User, second_user: User, shared: Path, clone: Path
) -> None:
    site = shared / "site.toml"
    site.write_text(f'work_area = "{shared}/area"\n')
    second_user.run("mkdir", shared / "area", cwd=shared)
    settings = {"CTK_HOME": "", "CTK_SITE": str(site)}
    done = ordinary_user.ctk("def", "more", cwd=clone, env=settings, status=3)
    assert f"(chosen by {site})" in done.stderr
    assert f"belongs to {second_user.name}" in done.stderr
