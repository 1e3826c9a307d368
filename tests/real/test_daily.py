"""A day's work, as a user does it: a sandbox to try packages in, secrets, arrays, and the next step that ctk names."""

from __future__ import annotations

import ast
import re
import subprocess
import time
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import CHECKOUT
from tests.real.jobs import Jobs
from tests.text import shown_on_a_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster, User

SECRET = '$(touch pwned) `id` "s3cr3t"'  # noqa: S105


@pytest.fixture
def jobs(lab: PracticeCluster, ground: Path, tiny_image: Path) -> Iterator[Jobs]:
    directory = ground / f"daily-{time.monotonic_ns()}"
    directory.mkdir()
    subprocess.run(["chown", lab.user.name, str(directory)], check=True)
    yield Jobs(lab, directory, tiny_image)
    lab.user.run("scancel", "--me", cwd=directory, env=lab.environment)


def make_wheel(directory: Path) -> None:
    with zipfile.ZipFile(directory / "ctkown-1.0-py3-none-any.whl", "w") as wheel:
        info = "ctkown-1.0.dist-info"
        wheel.writestr("ctkown.py", "print('own package')\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: ctkown\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_a_sandbox_takes_pip_and_shows_the_project(ordinary_user: User, base_image: Path, tiny_image: Path) -> None:
    me, directory = ordinary_user, ordinary_user.home / "sandbox-work"
    me.run("mkdir", "-p", directory / "defs", cwd=me.home)
    make_wheel(directory)
    (directory / "requirements.txt").write_text("./ctkown-1.0-py3-none-any.whl\n")
    (directory / "defs/try.toml").write_text('base = "debian-12"\n')
    me.ctk("build", "try", "--base", base_image, "--sandbox", "-o", "sb/", cwd=directory)
    installed = me.ctk("shell", "sb/", "pip", "install", "--no-index", "-r", "requirements.txt", cwd=directory)
    assert "externally-managed" not in installed.stderr
    me.ctk("shell", "sb/", "sh", "-c", "pwd > where; id -u >> where", cwd=directory)
    assert (directory / "where").read_text() == "/mnt\n0\n"
    (directory / "where").unlink()
    assert not list((directory / "sb/mnt").iterdir()), "the project is not copied into the image"
    ran = me.ctk("run", "sb/", "python3", "-c", "import ctkown", cwd=directory)
    assert ran.stdout == "own package\n"
    # A program that only prints, through a pipe, and is killed.
    killed = "import os, sys; print('printed'); print('also', file=sys.stderr); os.kill(os.getpid(), 9)"
    lost = me.ctk("run", "sb/", "python3", "-c", killed, cwd=directory, status=137)
    assert (lost.stdout, "also" in lost.stderr) == ("printed\n", True)
    assert (
        me.ctk("run", "sb/", "python3", "-c", killed, cwd=directory, status=137, env={"PYTHONUNBUFFERED": ""}).stdout
        == ""
    )
    quiet = me.ctk("run", tiny_image, "echo", "--bind", "it", cwd=directory)
    assert quiet.stdout == "--bind it\n"
    assert "Add --bind" not in ran.stderr + quiet.stderr, "links of a sandbox are not the project's"
    assert "INFO" not in ran.stderr + quiet.stderr
    assert "no-such" in me.ctk("run", tiny_image, "no-such", cwd=directory, status=127).stderr
    assert (
        me.ctk("run", tiny_image, "--shell", "for x in b a; do echo $x; done | sort", cwd=directory).stdout == "a\nb\n"
    )


def test_a_secret_reaches_every_node_and_no_file(jobs: Jobs) -> None:
    user, many = jobs.lab.user, ("--nodes", "2", "--gpus", "0")
    show = ("sh", "-c", 'printf "%s %s\\n" "$SLURM_PROCID" "$WANDB_API_KEY"')
    refused = ("sbatch", "-J", "no", "--image", jobs.image, "--env", f"WANDB_API_KEY={SECRET}", "true")
    assert "--env WANDB_API_KEY" in user.ctk(*refused, cwd=jobs.directory, status=2).stderr
    secrets = jobs.directory / "secrets.env"
    user.run("sh", "-c", "umask 077; cat > secrets.env", cwd=jobs.directory, input=f"WANDB_API_KEY={SECRET}\n")
    jobs.write("inherit", *many, "--env", "WANDB_API_KEY", *show)
    jobs.write("file", *many, "--env-file", "secrets.env", *show)
    shown = [f"0 {SECRET}", f"1 {SECRET}"]
    exported = {**jobs.lab.environment, "WANDB_API_KEY": SECRET}
    submit = ("sbatch", "--parsable")
    by_name = {
        "inherit": user.run(*submit, "inherit.sbatch", cwd=jobs.directory, env=exported).stdout.strip(),
        "file": jobs.submit("file", "--export=NONE"),
    }
    for name, job in by_name.items():
        assert jobs.finish(job) == "COMPLETED", jobs.log(f"{name}-{job}")
        lines = jobs.log(f"{name}-{job}").splitlines()
        assert sorted(line for line in lines if SECRET in line) == shown
        assert SECRET not in (jobs.directory / f"{name}.sbatch").read_text()
    without = jobs.submit("inherit", "--export=NONE")
    assert jobs.finish(without) == "FAILED"
    assert "WANDB_API_KEY is not set in this job" in jobs.log(f"inherit-{without}")
    secrets.chmod(0o640)
    assert jobs.finish(jobs.submit("file")) == "FAILED"
    assert not (jobs.directory / "pwned").exists()


def test_a_job_that_takes_more_than_its_memory_is_ended(jobs: Jobs) -> None:
    grow = "sh", "-c", "x=12345678; while :; do x=$x$x; [ ${#x} -lt 200000000 ] || sleep 60; done"
    jobs.write("greedy", "--gpus", "0", "--mem", "100M", *grow)
    job = jobs.submit("greedy")
    assert jobs.finish(job) == "FAILED"
    log = jobs.log(f"greedy-{job}")
    assert "exceeded memory limit" in log
    assert "gocryptfs" not in log


# --- the next step

_BASES = '["{name}"]\nbootstrap = "localimage"\nreference = "{image}"\n'


class Terminal:
    """A user at a terminal, who types the commands that `Next:` names, as they stand."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.typed: set[str] = set()

    def after(self, *words: str) -> list[str]:
        """The lines that `ctk WORDS` ends with."""
        user = self.jobs.lab.user
        environment = {**user.environment, **self.jobs.lab.environment, "TERM": "xterm", "NO_COLOR": "1"}
        shown = shown_on_a_terminal(user.command(user.program, *words), self.jobs.directory, environment)
        # The terminal's own sequences, of a progress line, stand before a line at most.
        return re.findall(r"Next: (.*)", shown) or pytest.fail(f"{words}: {shown}")

    def type(self, line: str, *statuses: int) -> str:
        """Run the line in a shell that has ctk; fail where it ends otherwise than with one of `statuses`."""
        user = self.jobs.lab.user
        script = f"PATH={user.program.parent}:$PATH\n{line}"
        done = user.run("bash", "-c", script, cwd=self.jobs.directory, env=self.jobs.lab.environment, status=None)
        assert done.returncode in (statuses or (0,)), f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout

    def follow(self, *words: str, statuses: tuple[int, ...] = (0,)) -> list[str]:
        lines = self.after(*words)
        for line in lines:
            self.type(line, *statuses)
        return lines


def test_each_next_step_works_as_it_stands(jobs: Jobs, base_image: Path) -> None:
    you, directory, image = Terminal(jobs), jobs.directory, jobs.image
    user = jobs.lab.user
    user.run("mkdir", "defs", cwd=directory)
    images = {"pytorch-2.6": base_image, "debian-12": image}
    text = "\n".join(_BASES.format(name=name, image=path) for name, path in images.items())
    (directory / "defs/bases.toml").write_text(text)
    (directory / "defs/keras-bert.toml").write_text('base = "debian-12"\n[job]\ncommand = ["sleep", "0"]\n')
    (directory / "defs/bare.toml").write_text('base = "debian-12"\n')

    assert you.follow("list") == ["ctk build keras-bert"]
    assert you.follow("bases") == ["ctk new mine --base pytorch-2.6"]
    assert you.after("bases", "show", "debian-12") == ["ctk new mine --base debian-12"]
    assert you.follow("new", "like", "--like", "bare") == ["ctk build like"]
    assert you.follow("doctor") == ["ctk list"]
    assert you.follow("build", "bare") == ["ctk shell bare.sif"]
    assert you.follow("fetch", "bare") == ["ctk build bare --offline"]
    job = "ctk sbatch --job-name keras-bert --image keras-bert.sif"
    assert you.follow("build", "keras-bert", "--force") == [f"{job} --gpus 0"]
    assert you.follow("check-gpu", "keras-bert.sif") == [f"{job} --gpus 0"]
    assert you.follow("audit", "keras-bert.sif") == ["ctk explain no-framework"]
    assert you.follow("sbatch", "-J", "keras-bert", "--gpus", "0") == ["sbatch keras-bert.sbatch"]
    assert you.follow("build", "bare", "--sandbox", "-o", "sb/") == ["ctk shell ./sb/", "ctk build ./sb/ -o NAME.sif"]
    assert you.follow("shell", "sb/", "true") == ["ctk build sb/ -o NAME.sif"]
    assert you.follow("new", "other", "--base", "pytorch-2.6")[-1] == "ctk build other"

    array = (
        "sbatch",
        "-J",
        "sweep",
        "--image",
        "bare.sif",
        "--gpus",
        "0",
        "--array",
        "3-4",
        "--submit",
        "echo",
        "here",
    )
    queue, tail = you.after(*array)
    you.type(queue)
    assert re.fullmatch(r"tail -F logs/sweep-\d+_3\.log", tail)
    assert "here" in you.type(f"timeout 30 sh -c '{tail} | sed \"/ended with status 0/q\"'", 0, 124)


def test_each_call_of_suggest_is_known() -> None:
    """A new form of `Next:` has to be added to the test above, or to those of the practice cluster."""
    found: dict[str, int] = {}
    for path in sorted((CHECKOUT / "toolkit/cli").glob("*.py")):
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "suggest"
        ]
        if calls:
            found[path.stem] = len(calls)
    assert found == {
        "audit": 2,
        "bases": 2,
        "bases_registry": 1,
        "build_report": 2,
        "cache": 1,
        "check_gpu": 1,
        "cluster": 3,
        "doctor": 1,
        "edit": 1,
        "fetch": 2,
        "inspect": 2,
        "job_script": 2,
        "lab": 4,
        "lock": 1,
        "new": 2,
        "recipes": 1,
        "shell": 1,
        "try_recipe": 1,
        "welcome": 1,
    }
