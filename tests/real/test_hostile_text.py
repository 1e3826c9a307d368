"""Hostile recipes, builds and images against the user who builds or looks at them, with the real runtime."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real.test_build import inside, recipe
from tests.text import is_harmless, shown_on_a_terminal, without_own_codes

if TYPE_CHECKING:
    from tests.real.conftest import PracticeCluster, User

# In the words of sh's printf: clear the screen, set the clipboard, C1's CSI, reorder; then a line like ctk's.
ESCAPES = r"\033[2J\033]52;c;cm0gLXJmIH4=\007\302\2337m\342\200\256gpj\rVerdict: gpu-ready"


def on_a_terminal(user: User, *arguments: str | Path, cwd: Path) -> str:
    """What the user sees on a terminal, without the codes that are ctk's own."""
    environment = {**user.environment, "TERM": "xterm", "COLUMNS": "200"}
    return without_own_codes(shown_on_a_terminal(user.command(user.program, *arguments), cwd, environment))


def test_a_failing_build_cannot_control_the_terminal(user: User, directory: Path, tiny_image: Path) -> None:
    steps = [
        rf"busybox printf 'ctk: {ESCAPES}\n'",
        rf"""sh -c "busybox printf 'FATAL: {ESCAPES}\n' >&2; exit 3" #""",
    ]
    recipe(
        directory, user, "bad", f'base = "debian-12"\npost = """\n{chr(10).join(steps)}\n"""\n'.replace("\\", "\\\\")
    )
    command = ("build", "bad", "--base", tiny_image)
    done = user.ctk(*command, "--flat", cwd=directory, status=4)
    step = "\nctk: \\x1b[2J\\x1b]52;c;cm0gLXJmIH4=\\x07\\x9b7m\\u202egpj (failed after "
    assert step in done.stderr, "the step"
    assert "\n  | FATAL: \\x1b[2J" in done.stderr, "the last lines"
    for shown in (done.stdout + done.stderr, on_a_terminal(user, *command, cwd=directory)):
        assert is_harmless(shown, keep="\n\t"), repr(shown)
        assert not any(line.startswith("Verdict") for line in shown.splitlines())
    assert b"\x1b]52" in (directory / "bad.sif.build.log").read_bytes(), "the log has what the build printed"


def test_an_image_cannot_control_the_terminal(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("apptainer", "build", "--fakeroot", "--sandbox", "evil", tiny_image, cwd=directory)
    escapes = "\x1b[2J\x1b]52;c;cm0gLXJmIH4=\x07\x9b7m\u202e\u2066[/]\nVerdict: gpu-ready"
    labels = json.dumps({"description": escapes, escapes: "x", "ctk.version": "日本　語"})
    site = "evil/usr/local/lib/python3.11/site-packages/bad-1.dist-info"
    for path, text in {
        "evil/.singularity.d/labels.json": labels,
        "evil/.singularity.d/runscript": f"#!/bin/sh\necho {escapes}\n",
        "evil/.singularity.d/Singularity": f"Bootstrap: docker\n# {escapes}\n",
        "evil/.singularity.d/env/90-bad.sh": f"export LD_LIBRARY_PATH='{escapes}'\n",
        "evil/usr/local/bin/python3.11": "",
        f"{site}/METADATA": f"Name: bad{escapes}\nVersion: 1{escapes}\n",
    }.items():
        user.run("mkdir", "-p", Path(path).parent, cwd=directory)
        user.run("tee", path, cwd=directory, input=text)
    for arguments in (
        ("inspect", "evil"),
        ("inspect", "evil", "--definition"),
        ("audit", "evil", "--packages"),
        ("diff", "evil", tiny_image),
    ):
        shown = on_a_terminal(user, *arguments, cwd=directory)
        assert is_harmless(shown, keep="\n\t"), repr(shown)
        if "--definition" not in arguments:
            assert not any(line.startswith("Verdict: gpu-ready") for line in shown.splitlines())
            piped = user.ctk(*arguments, cwd=directory, status=None)
            assert is_harmless(piped.stdout + piped.stderr, keep="\n\t"), repr(piped.stdout)
    assert "日本　語" in on_a_terminal(user, "inspect", "evil", cwd=directory)
    assert escapes in user.ctk("inspect", "evil", "--definition", cwd=directory).stdout, "exact, for a file"
    assert (
        escapes.encode()
        in user.run(
            user.program, "run", "evil/", "--", "cat", "/.singularity.d/runscript", cwd=directory
        ).stdout.encode()
    ), "what a program prints in an image is not ctk's"


def test_private_files_need_to_be_allowed(user: User, directory: Path, tiny_image: Path) -> None:
    user.run("mkdir", "-p", "home/.ssh", "project/defs", cwd=directory)
    user.run("tee", "home/.ssh/id", cwd=directory, input="my key\n")
    user.run("chmod", "600", "home/.ssh/id", cwd=directory)
    user.run("tee", "data.csv", cwd=directory, input="1\n")
    user.run("chmod", "644", "data.csv", cwd=directory)
    project = directory / "project"
    user.run("ln", "-s", "../home/.ssh/id", "readme.txt", cwd=project)
    user.run("tee", "train.py", cwd=project, input="print()\n")
    sources = ("../train.py", "../readme.txt", "../../data.csv")
    files = "".join(f'[[files]]\nfrom = "{source}"\nto = "/opt/{Path(source).name}"\n' for source in sources)
    recipe(project, user, "mine", f'base = "debian-12"\n{files}')
    command = ("build", "mine", "--base", tiny_image)
    key = f"{directory}/home/.ssh/id"
    listed = [
        f"! files[2] copies {key}, which is outside the project; private (a name used for credential files): "
        f"`ctk build` needs --allow-file {key} [private-file]",
        f"! files[3] copies {directory}/data.csv, which is outside the project [file-outside-project]",
    ]
    refused = user.ctk(*command, cwd=project, status=2).stderr.splitlines()
    assert refused[:2] == listed
    assert refused[2].endswith(f"[[files]] would copy private files into the image: {key} [private-file]")
    option = shlex.split(refused[3].partition(" add ")[2])
    assert option == ["--allow-file", key]
    assert list(project.glob("mine.sif*")) == []
    for looking in (("--dry-run",), ()):
        words = (*command, *looking) if looking else ("def", "mine", "--base", tiny_image)
        shown = user.ctk(*words, cwd=project)
        assert shown.stderr.splitlines()[:2] == listed
        assert "files[" not in shown.stdout
    script = user.ctk(*command, "--dry-run", cwd=project).stdout
    ended = user.run("sh", cwd=project, input=script, status=2)
    assert f"would copy private files into the image: {key}" in ended.stderr, "nor does the script of a dry run"
    assert not (project / "mine.sif").exists()
    built = user.ctk(*command, *option, cwd=project)
    allowed = f"! files[2] copies {key}, which is outside the project [file-outside-project]"
    assert allowed in built.stderr.splitlines()
    assert inside(user, "mine.sif", "ls", "/opt", cwd=project).split() == ["data.csv", "readme.txt", "train.py"]


@pytest.mark.parametrize("command", ["lock", "build"])
def test_credentials_of_an_index_are_neither_shown_nor_logged(
    me: User, tmp_path: Path, base_image: Path, command: str
) -> None:
    recipe(tmp_path, me, "mine", f'base = "{base_image}"\npackages = ["pydot"]\n')
    index = {"PIP_INDEX_URL": "http://ann:S3CRET@127.0.0.1:9/simple?sig=S3CRET", "UV_HTTP_RETRIES": "0"}
    done = me.ctk("--trace", command, "mine", cwd=tmp_path, status=None, env=index)
    assert done.returncode != 0
    assert "UV_DEFAULT_INDEX=" in done.stderr, done.stderr
    assert "S3CRET" not in done.stdout + done.stderr
    as_json = me.ctk(command, "mine", "--json", cwd=tmp_path, status=None, env=index)
    assert "S3CRET" not in as_json.stdout + as_json.stderr


def test_a_job_s_name_cannot_control_the_terminal(lab: PracticeCluster, ground: Path) -> None:
    user, name = lab.user, "\x1b[2J\x9b7m\u202e日本"
    scheduler = {**lab.environment, "LANG": "C.UTF-8"}
    user.run("sbatch", "--hold", f"--job-name={name}", "--wrap=true", "-o", "/dev/null", cwd=ground, env=scheduler)
    log = next(Path(lab.environment["SLURM_CONF"]).parent.rglob("slurmctld.log"))
    user.run("sh", "-c", 'printf "%s\\n" "$1" >> "$2"', "sh", f"evil {name}", log, cwd=ground)
    options = ("--name", user.ctk("lab", "list", cwd=ground).stdout.splitlines()[1].split("\t")[0])
    for command in (("status",), ("logs",)):
        shown = on_a_terminal(user, "lab", *command, *options, cwd=ground)
        assert is_harmless(shown, keep="\n\t"), repr(shown)
        assert "\\x1b[2J" in shown
        assert "日本" in shown
    user.run("scancel", "--me", cwd=ground, env=lab.environment)
