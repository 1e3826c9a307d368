"""A layered image never runs without its layers: the file lacks one, the runtime drops it, or the host ignores it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pages import command_lines
from tests.real.conftest import LOWER, UPPER

if TYPE_CHECKING:
    from tests.real.conftest import User

CONFIGURATION = Path("/etc/apptainer/apptainer.conf")
# A runtime that takes the uppermost layer out of a copy of the image, and runs that.
DROPPING = """#!/bin/bash
words=()
rm -f "{directory}/copy.sif"
for word; do
    if [[ $word == *.sif && -f $word && ! -f {directory}/copy.sif ]]; then
        cp "$word" "{directory}/copy.sif" && {real} sif del 5 "{directory}/copy.sif" && word={directory}/copy.sif
    fi
    words+=("$word")
done
exec {real} "${{words[@]}}"
"""
CONFIGURED = '#!/bin/sh\nexec {real} -c {directory}/apptainer.conf "$@"\n'


def runtime(directory: Path, text: str, overlay: str = "yes") -> dict[str, str]:
    """Puts another runtime in front of the real one on PATH: a program's text, and a setting of its configuration."""
    real = shutil.which("apptainer") or ""
    (directory / "bin").mkdir()
    program = directory / "bin" / "apptainer"
    program.write_text(text.format(real=real, directory=directory))
    program.chmod(0o755)
    settings, changed = re.subn("(?m)^enable overlay = .*", f"enable overlay = {overlay}", CONFIGURATION.read_text())
    assert changed == 1
    (directory / "apptainer.conf").write_text(settings)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


@pytest.fixture
def place(ordinary_user: User, ground: Path) -> Path:
    """An empty directory of the ordinary user."""
    path = ground / f"layers-{time.monotonic_ns()}"
    path.mkdir()
    shutil.chown(path, ordinary_user.name)
    return path


def job(user: User, directory: Path, script: str, environment: dict[str, str]) -> tuple[int, str]:
    """The exit status and the log of a job script, run by bash as Slurm would run it on a node."""
    variables = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "x", "SLURM_SUBMIT_DIR": str(directory), **environment}
    done = user.run("bash", f"{script}.sbatch", cwd=directory, env=variables, status=None)
    return done.returncode, done.stdout + done.stderr


def write_jobs(user: User, directory: Path, image: Path) -> None:
    """The scripts of a job on the CPU, and of one with the GPU gate."""
    for name, gpus in (("cpu", "0"), ("gpu", "1")):
        command = ("--image", image, "--gpus", gpus, "--", "touch", "ran")
        user.ctk("sbatch", "-J", name, *command, cwd=directory)


def owned(user: User, image: Path, directory: Path) -> Path:
    """The user's own copy of an image, ./trial.sif, in place of any earlier one."""
    path = directory / "trial.sif"
    shutil.copy(image, path)
    shutil.chown(path, user.name)
    return path


def refused(user: User, directory: Path, image: Path, layer: str, environment: dict[str, str]) -> None:
    """Nothing starts the program, and each command names the layer."""
    for command in (("run", image, "touch", "ran"), ("shell", image, "touch", "ran"), ("check-gpu", image)):
        done = user.ctk(*command, cwd=directory, env=environment, status=3)
        assert re.search(
            rf"^Error: {layer} of {image} is not mounted.*\[layer-not-mounted\]\nUse a host", done.stderr
        ), done.stderr
        assert done.stderr.count("[layer-not-mounted]") == 1
    gate = user.ctk("check-gpu", image, "--print-gate", cwd=directory).stdout
    gated = user.run("bash", "-c", f"{gate}\ntouch ran", cwd=directory, env=environment, status=3)
    assert f"{layer} of the image is not mounted" in gated.stderr
    for script in ("cpu", "gpu"):
        status, log = job(user, directory, script, environment)
        assert (status, log.count(layer), log.count("[layer-not-mounted]")) == (3, 1, 1), log
        assert "ended with status 3" in log
    assert not (directory / "ran").exists()


def test_a_layered_image_runs_with_its_layers(user: User, directory: Path, layered_image: Path) -> None:
    assert user.ctk("run", layered_image, "cat", "/which", cwd=directory).stdout == "layer 1\n"
    assert user.ctk("shell", layered_image, "--", "cat", "/which", cwd=directory).stdout == "layer 1\n"
    assert json.loads(user.ctk("check-gpu", layered_image, "--json", cwd=directory, status=3).stdout)["findings"]
    command = (
        "--image",
        layered_image,
        "--gpus",
        "0",
        "--env",
        "WORD=$(id) 'é'",
        "--shell",
        'cat /which; echo "$WORD"; exit 5',
    )
    user.ctk("sbatch", "-J", "cpu", *command, cwd=directory)
    status, log = job(user, directory, "cpu", {})
    assert (status, "layer 1\n$(id) 'é'\n" in log) == (5, True), log
    fuse = runtime(directory, CONFIGURED, "driver")  # as on a kernel whose overlays users cannot mount
    assert user.ctk("run", layered_image, "cat", "/which", cwd=directory, env=fuse).stdout == "layer 1\n"


def test_a_program_in_a_layered_image_keeps_its_words_status_and_variables(
    ordinary_user: User, place: Path, layered_image: Path
) -> None:
    words = ["", " ", "a b", "'", '"', "\\", "$HOME", "$(id)", "*", "--", "-c", "\n", "日本", "%s\\n", "end"]
    show = 'printf "%s|" "$@"; printf "%s" "$image$layer$check"; exit 77'
    named = {"APPTAINERENV_image": "1", "APPTAINERENV_layer": "2", "APPTAINERENV_check": "3"}
    done = ordinary_user.ctk(
        "run", layered_image, "--", "sh", "-c", show, "sh", *words, cwd=place, env=named, status=77
    )
    assert done.stdout == "".join(f"{word}|" for word in words) + "123"
    for status in (0, 1, 3, 126, 127, 255):
        ordinary_user.ctk("run", layered_image, "--", "sh", "-c", f"exit {status}", cwd=place, status=status)
    ordinary_user.run("tee", "plain.txt", cwd=place, input="not a program\n")
    for command, status, message in (
        ("no-such-command", 127, "the image has no program no-such-command"),
        ("./no-such-file", 127, "./no-such-file does not exist in the container"),
        ("./plain.txt", 126, "./plain.txt is not an executable file"),
    ):
        assert message in ordinary_user.ctk("run", layered_image, "--", command, cwd=place, status=status).stderr
    assert (
        ordinary_user.run("sh", "-c", f"echo words | {ordinary_user.program} run {layered_image} cat", cwd=place).stdout
        == "words\n"
    )


def test_signals_reach_a_program_in_a_layered_image_as_in_a_flat_one(
    ordinary_user: User, place: Path, layered_image: Path, tiny_image: Path
) -> None:
    program = "trap 'echo TERM > ended; exit 9' TERM; trap 'echo INT > ended; exit 8' INT; echo > begun; "
    program += "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2; done"

    def end(image: Path, number: int) -> tuple[int, str]:
        command = ordinary_user.command(ordinary_user.program, "run", image, "--", "sh", "-c", program)
        process = subprocess.Popen(command, cwd=place, env=ordinary_user.environment, start_new_session=True)
        deadline = time.monotonic() + 20
        while not (place / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, number)
        status = process.wait(20)
        (place / "begun").unlink()
        return status, (place / "ended").read_text()

    assert end(layered_image, signal.SIGINT) == end(tiny_image, signal.SIGINT) == (8, "INT\n")
    status, ended = end(layered_image, signal.SIGTERM)
    assert (status, ended) == end(tiny_image, signal.SIGTERM)
    assert ended == "TERM\n"


def test_layer_removed_from_the_file(user: User, directory: Path, layered_image: Path, tiny_image: Path) -> None:
    image = owned(user, layered_image, directory)
    write_jobs(user, directory, image)
    user.run("apptainer", "sif", "del", "5", image, cwd=directory)
    for command in (("run", image, "touch", "ran"), ("shell", image, "touch", "ran"), ("check-gpu", image)):
        done = user.ctk(*command, cwd=directory, status=2)
        assert f"was built with the layer {UPPER}, and the file no longer contains it" in done.stderr
        assert "[layer-removed]" in done.stderr
    assert UPPER in user.ctk("sbatch", "-J", "other", "--image", image, "true", cwd=directory, status=2).stderr
    for script in ("cpu", "gpu"):
        status, log = job(user, directory, script, {})
        assert (status, log.count(UPPER)) == (3, 1), log
    assert not (directory / "ran").exists()
    owned(user, tiny_image, directory)
    assert job(user, directory, "cpu", {})[0] == 0, "another image of that name has layers of its own, or none"
    assert (directory / "ran").exists()


def test_runtime_that_drops_a_layer(user: User, directory: Path, layered_image: Path) -> None:
    write_jobs(user, directory, layered_image)
    refused(user, directory, layered_image, UPPER, runtime(directory, DROPPING))


def test_host_that_ignores_layers(user: User, directory: Path, layered_image: Path, tiny_image: Path) -> None:
    write_jobs(user, directory, owned(user, tiny_image, directory))
    image = owned(user, layered_image, directory)  # built anew, with layers, after the scripts were written
    ignoring = runtime(directory, CONFIGURED, "no")
    refused(user, directory, image, LOWER, ignoring)
    line = next(line for line in command_lines("docs/manual.md") if "ctk-layer-" in line)
    pasted = ("bash", "-c", f"{line.replace('apptainer exec', 'apptainer exec --userns')}\ntouch ran")
    user.run(*pasted, cwd=directory, env=ignoring, status=3)
    assert not (directory / "ran").exists()
    plain = ("apptainer", "--quiet", "exec", "--userns", image, "touch", "ran")
    user.run(*plain, cwd=directory, env=ignoring)
    assert (directory / "ran").exists(), "nothing stops plain apptainer: this is what the check is for"
    user.run("rm", "ran", cwd=directory)
    user.run(*pasted, cwd=directory)
    assert (directory / "ran").exists()


def test_doctor_and_build_on_a_host_that_ignores_layers(ordinary_user: User, place: Path, tiny_image: Path) -> None:
    ignoring = runtime(place, CONFIGURED, "no")
    doctor = ordinary_user.ctk("doctor", "--offline", "--json", cwd=place, env=ignoring, status=None).stdout
    messages = {finding["code"]: finding["message"] for finding in json.loads(doctor)["findings"]}
    assert "not usable, the runtime ignores the layers of an image" in messages["layers-not-mounted"]
    owned(ordinary_user, tiny_image, place)
    ordinary_user.run("mkdir", "defs", cwd=place)
    recipe = 'base = "../trial.sif"\n\n[environment]\nWORD = "x"\n'
    ordinary_user.run("tee", "defs/mine.toml", cwd=place, input=recipe)
    refused = ordinary_user.ctk("build", "mine", "--layered", cwd=place, env=ignoring, status=3).stderr
    assert "not possible on this host: the runtime ignores the layers of an image" in refused
    assert "[layers-not-usable]" in refused
    assert not (place / "mine.sif").exists()
