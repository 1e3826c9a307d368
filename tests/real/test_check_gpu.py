"""`ctk check-gpu` on a host without a GPU, and `ctk run`, on the real runtime."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.real.conftest import User


def check(
    user: User, image: Path, directory: Path, *, status: int, env: dict[str, str] | None = None
) -> tuple[str, dict[str, str], str]:
    """check-gpu's verdict, its findings by code, and the words that a user reads."""
    done = user.ctk("check-gpu", image, "--json", cwd=directory, status=status, env=env)
    document = json.loads(done.stdout)
    assert document["schema"] == "ctk.check-gpu/1"
    words = user.ctk("check-gpu", image, cwd=directory, status=status, env=env).stdout
    return document["verdict"], {finding["code"]: finding["message"] for finding in document["findings"]}, words


def test_host_without_gpu(user: User, directory: Path, small_python: Path) -> None:
    verdict, findings, words = check(user, small_python, directory, status=3)
    assert verdict == "no-gpu-on-host"
    assert list(findings) == ["no-gpu-on-host"]
    assert f"This host has no GPU; {small_python} could not be checked." in words


# --- ctk run


def test_the_exit_status_of_a_command_is_passed_on(user: User, directory: Path, tiny_image: Path) -> None:
    for status in (0, 1, 3, 77, 127, 255):
        user.ctk("run", tiny_image, "--", "sh", "-c", f"exit {status}", cwd=directory, status=status)


def test_what_cannot_be_started_has_the_status_of_a_shell(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("tee", "plain.txt", cwd=directory, input="not a program\n")
    for command, status, words in (
        ("no-such-command", 127, "the image has no program no-such-command"),
        ("./no-such-file", 127, "./no-such-file does not exist in the container"),
        ("./plain.txt", 126, "./plain.txt is not an executable file"),
    ):
        assert words in user.ctk("run", tiny_image, "--", command, cwd=directory, status=status).stderr
    assert "no program nosuch" in user.ctk("shell", tiny_image, "--", "nosuch", cwd=directory, status=127).stderr


WORDS = [
    *("", " ", "a b", "'", '"', "\\", "$HOME", "$(id)", "`id`", "*", "~", "#", ";", "&&", "a=b", "%post", "{{ x }}"),
    *("-", "--", "--help", "--nv", "-c", "--json", "--trace", "\n", "a\n\nb\t", "日本", "é", "!", "\\n", "\x01", "end"),
]


def test_arguments_arrive_exactly(user: User, directory: Path, tiny_image: Path) -> None:
    done = user.ctk(
        "run", tiny_image, "--", "sh", "-c", 'for word; do printf "%s\\037" "$word"; done', "sh", *WORDS, cwd=directory
    )
    assert done.stdout.split("\x1f") == [*WORDS, ""]


def test_the_printed_command_is_the_one_that_runs(user: User, directory: Path, tiny_image: Path) -> None:
    words = ["sh", "-c", 'echo "$1$PYTHONNOUSERSITE"', "sh", "it's "]
    printed = user.ctk("run", tiny_image, "--dry-run", "--", *words, cwd=directory).stdout
    assert user.run("sh", "-c", printed, cwd=directory).stdout == "it's 1\n"
    assert user.ctk("run", tiny_image, "--", *words, cwd=directory).stdout == "it's 1\n"


def test_a_link_that_leads_out_is_named_with_the_bind_that_mends_it(
    user: User, directory: Path, tiny_image: Path
) -> None:
    user.run("ln", "-s", "/srv", "data", cwd=directory)
    done = user.ctk("run", tiny_image, "--", "true", cwd=directory)
    assert "data leads to /srv, which is not mounted in the container" in done.stderr
    assert "--bind /srv" in done.stderr
    bound = user.ctk("run", tiny_image, "--bind", "/srv", "--", "ls", "-d", "data/.", cwd=directory)
    assert bound.stdout == "data/.\n"
    assert "leads to" not in bound.stderr


# --- a host that has only `singularity`


@pytest.fixture(scope="session")
def only_singularity(ground: Path) -> dict[str, str]:
    """A PATH on which the runtime is called `singularity` and nothing is called `apptainer`."""
    only = ground / "only-singularity"
    only.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(place).iterdir():
            link = only / program.name
            if program.name not in ("apptainer", "singularity") and not link.is_symlink():
                link.symlink_to(program)
    (only / "singularity").symlink_to(str(shutil.which("apptainer")))
    return {"PATH": str(only)}


def test_with_only_a_singularity_command_everything_works(
    user: User, directory: Path, tiny_image: Path, small_python: Path, only_singularity: dict[str, str]
) -> None:
    user.run("mkdir", "defs", cwd=directory)
    user.run("tee", "defs/mine.toml", cwd=directory, input='base = "debian-12"\npost = "touch /opt/made"\n')
    traced = user.ctk("build", "mine", "--base", tiny_image, "--trace", cwd=directory, env=only_singularity)
    assert "/singularity --quiet exec " in traced.stderr
    flat = user.ctk("build", "mine", "--base", tiny_image, "--flat", "--trace", cwd=directory, env=only_singularity)
    assert "/singularity build " in flat.stderr
    assert not any("/apptainer " in line for line in (traced.stderr + flat.stderr).splitlines() if line[:2] == "+ ")
    assert user.ctk("run", "mine.sif", "--", "ls", "/opt", cwd=directory, env=only_singularity).stdout == "made\n"
    assert check(user, small_python, directory, status=3, env=only_singularity)[0] == "no-gpu-on-host"
    said = user.ctk("inspect", "mine.sif", "--json", cwd=directory, env=only_singularity).stdout
    assert json.loads(said)["labels"]["ctk.recipe"] == "mine"
