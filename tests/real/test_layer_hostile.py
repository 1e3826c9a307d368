"""Layers over bases, and by scripts, that lead a build to files of the host or close its own tree to it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.inventory.making import fill, squash, system, write_sif

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

# Runs all steps in one process: for each a base, a script and a place for one copied file.
PROGRAM = """\
import json, sys
from pathlib import Path
from toolkit.builds.layers.make import Below, LayerRoom, NotLayered, StepFailed, make_layer
from toolkit.definitions.steps import Input
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site
runtime, answers = find_runtime(load_site()), []
for number, (base, script, place) in enumerate(json.loads(Path("steps.json").read_text())):
    directory, lines = Path(f"room{number}").absolute(), []
    directory.mkdir()
    room = LayerRoom(directory, runtime, (), {}, lines.append)
    inputs = [Input(Path("data").absolute(), place)] if place else []
    write = {"/.singularity.d/labels.json": b"{}", "/.singularity.d/env/90-environment.sh": b"true"}
    try:
        layer = make_layer(script, Below(Path(base)), room, inputs=inputs, finish=lambda found: write)
        answers.append(str(layer.path))
    except (NotLayered, StepFailed) as error:
        answers.append(f"refused: {error} {lines[-3:]}")
print(json.dumps(answers))
"""


@dataclass(frozen=True)
class Hostile:
    """A base with `files` and mksquashfs's `pseudo` definitions, what is built over it, and the answer."""

    answer: str  # what a refusal says, or what `unsquashfs` lists
    files: dict[str, str | bytes] = field(default_factory=dict)
    pseudo: tuple[str, ...] = ()
    script: str = "echo new > /opt/new"
    place: str = ""


def cases(victim: Path) -> list[Hostile]:
    labels = f"ln -s {victim} /.singularity.d/labels.json"
    return [
        Hostile("the base has /.post.script", pseudo=(f".post.script s 777 7 7 {victim}",)),
        Hostile(
            "the base has /.ctk-files",
            files={".ctk-files/1/": ""},
            pseudo=(f".ctk-files/1/data s 777 7 7 {victim}",),
            place="/.ctk-files/1/data",
        ),
        Hostile(f"{victim.name} ", pseudo=(f"link s 777 7 7 {victim}",), place="/link"),
        Hostile("/opt/new ", pseudo=("/ d 555 7 7",), place="/opt/data"),
        Hostile("labels.json ", script="chown 7:7 / /.singularity.d; chmod 500 / /.singularity.d"),
        Hostile("labels.json ", script=f"rm /.post.script; ln -s {victim} /.post.script; {labels}"),
        Hostile(
            "cannot hold the metadata", script=f"rm -rf /.singularity.d/env; ln -s {victim.parent} /.singularity.d/env"
        ),
    ]


def base(directory: Path, case: Hostile) -> Path:
    applets = ("sh", "chmod", "chown", "ln", "mkdir", "rm")
    links = {f"bin/{applet}": "-> busybox" for applet in applets}
    metadata = (".singularity.d/env/", ".singularity.d/actions/")
    places = dict.fromkeys(("dev/", "proc/", "sys/", "tmp/", "root/", "opt/", "var/tmp/", *metadata), "")
    accounts = {"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n"}
    tree = fill(directory / "tree", {**links, **places, **accounts, **case.files})
    shutil.copy("/bin/busybox", tree / "bin")
    options = [word for line in case.pseudo for word in ("-p", line)]
    squashed = squash(tree, directory / "squashfs", "-all-root", *options)
    return write_sif(directory / "base.sif", [system(squashed.read_bytes())])


def test_no_base_or_script_reaches_the_host_or_closes_a_tree(user: User, directory: Path) -> None:
    victim = directory / "victim"
    todo = cases(victim)
    steps = []
    for number, case in enumerate(todo):
        (directory / str(number)).mkdir()
        steps.append((str(base(directory / str(number), case)), case.script, case.place))
    victim.write_text("mine\n")
    (directory / "data").write_text("copied\n")
    (directory / "steps.json").write_text(json.dumps(steps))
    (directory / "program.py").write_text(PROGRAM)
    subprocess.run(["chown", "-hR", user.name, str(directory)], check=True)
    before = sorted(directory.iterdir())
    done = user.run(user.program.with_name("python"), "program.py", cwd=directory)
    for case, answer in zip(todo, json.loads(done.stdout.splitlines()[-1]), strict=True):
        if not answer.startswith("refused"):
            answer = user.run("unsquashfs", "-lln", answer, cwd=directory).stdout.replace("\n", " \n")
        assert case.answer in answer, f"{case}: {answer}"
        assert ".post.script \n" not in answer
    assert victim.read_text() == "mine\n"
    rooms = {directory / f"room{number}" for number in range(len(todo))}
    assert set(directory.iterdir()) - set(before) == rooms
