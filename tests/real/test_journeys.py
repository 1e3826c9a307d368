"""Whole journeys of newcomers, as ordinary users, with the commands that README and manual show and no others."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.pages import command_lines
from tests.real.conftest import CA_BUNDLE, CHECKOUT, User

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster

pytestmark = pytest.mark.slurm

_MAX_COMMANDS = 8
_TRAIN = """\
import yaml

settings = yaml.safe_load("{epochs: 2}")
for epoch in range(settings["epochs"]):
    print("epoch", epoch + 1, flush=True)
"""


@pytest.fixture
def student(ordinary_user: User, ground: Path, lab: PracticeCluster, python_image: Path) -> Iterator[Path]:
    """The home of a student with a `project/train.py`; `remote` is where they clone ctk from.

    A small image on this machine stands for Debian's archive and its minute of debootstrap.
    """
    home = ground / f"student-{time.monotonic_ns()}"
    defs = home / "project/defs"
    defs.mkdir(parents=True)
    (home / "project/train.py").write_text(_TRAIN)
    (defs / "bases.toml").write_text(f'[debian-12]\nbootstrap = "localimage"\nreference = "{python_image}"\n')
    subprocess.run(["git", "clone", "--quiet", "--bare", str(CHECKOUT), str(home / "remote")], check=True)
    subprocess.run(["chown", "-R", f"{ordinary_user.name}:", str(home)], check=True)
    yield home
    shutil.rmtree(home)


def test_a_student_gets_from_a_clone_to_the_log_of_their_own_job(
    ordinary_user: User, lab: PracticeCluster, student: Path
) -> None:
    journey = [
        "git clone ~/remote ctk",
        "cd ctk",
        "uv tool install .",
        "cd ~/project",
        "ctk new mine --from train.py",
        "ctk build mine",
        "ctk sbatch --job-name mine --submit",
    ]
    assert len(journey) <= _MAX_COMMANDS
    shown = {line for page in ("README.md", "docs/manual.md") for line in command_lines(page)}
    assert [line for line in journey if line not in shown and line.split()[0] not in ("git", "cd")] == []

    environment = {
        **lab.environment,
        "HOME": str(student),
        "CTK_HOME": "",
        "PATH": f"{student}/.local/bin:{ordinary_user.program.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "APPTAINER_BIND": CA_BUNDLE,
    }
    script = "\n".join(["set -eux", *journey])
    done = ordinary_user.run("bash", "-c", script, cwd=student, env=environment)
    assert (
        f"{student}/.local/bin"
        in ordinary_user.run("bash", "-c", "command -v ctk", cwd=student, env=environment).stdout
    )
    log = wait_for_log(student / "project/logs", "epoch 2")
    assert "epoch 1\nepoch 2\n" in log, done.stderr
    assert 'packages = ["pyyaml"]' in (student / "project/defs/mine.toml").read_text()

    # The next evening: nothing changed, then one package more.
    def later(*words: str) -> subprocess.CompletedProcess[str]:
        return ordinary_user.run("ctk", *words, cwd=student / "project", env=environment)

    image = student / "project/mine.sif"
    before = image.stat().st_ino, image.stat().st_mtime_ns
    assert "mine.sif is up to date" in later("build", "mine").stdout
    assert (image.stat().st_ino, image.stat().st_mtime_ns) == before
    added = json.loads(later("add", "mine", "PIL", "--json").stdout)
    assert added["added"] == ["pillow"]
    (change,) = added["lock_changes"].values()
    (name,) = change["added"]
    assert name.startswith("pillow==")
    assert change["changed"] == []
    assert "is up to date" in later("lock", "mine", "--check").stdout


def wait_for_log(directory: Path, end: str) -> str:
    """The one log in `directory`, once it holds `end`."""
    for _ in range(300):
        for log in directory.glob("*.log"):
            text = log.read_text()
            if end in text:
                return text
        time.sleep(0.1)
    found = {str(log): log.read_text() for log in directory.glob("*.log")}
    pytest.fail(f"no log with {end!r}: {found}")
