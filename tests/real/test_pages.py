"""Every command that README, manual and --help show, run as it is typed: on a small image, and on a real Slurm.

A small image of Debian stands for the frameworks' own, which are gigabytes on a registry, and one on loopback for the
registries. All else is real.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from typer.core import TyperGroup

from tests.pages import NEVER_RUN, command_lines, for_this_place
from tests.pins.bases import oci
from tests.real.conftest import CA_BUNDLE, CHECKOUT, User
from toolkit.cli.main import COMMANDS, load
from toolkit.recipes.bases import bases_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slurm

# The small image has no GPU framework, and this host need not have a GPU: these are the right answers then.
_STATUS = {"ctk audit": (1,), "ctk check-gpu": (0, 3), "ctk diff": (0, 1)}
# It stands for the bases of recipes in the pages, and for the one that `ctk new` chooses for torch.
_BASE = """
["{name}"]
bootstrap = "localimage"
reference = "{image}"
"""
_OF_TORCH = 'framework = "torch"\nframework_version = "2.6.0"\n'
_KERAS_BERT = """
base = "tensorflow-2.15"
packages = ["numpy", "pydot"]

[job]
command = ["python3", "train.py"]
gpus = 1
"""


@dataclass(frozen=True)
class Reader:
    """Somebody with a checkout, an image and a cluster, who types what the pages show."""

    place: Path
    environment: dict[str, str]
    registry: str

    def run(self, *script: str) -> subprocess.CompletedProcess[str]:
        text = for_this_place(self.place, "\n".join(script))
        for name, here in (("add pytorch/", f"add {self.registry}/pytorch/"), ("nvcr.io", self.registry)):
            text = text.replace(name, here)
        return subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", text],
            cwd=self.place / "checkout",
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=550,
            check=False,
        )


def _stand_ins(image: Path) -> str:
    """A file of bases in which `image` replaces those that have PyTorch, and two others."""
    of_torch = [base.name for base in bases_in(CHECKOUT / "defs").values() if base.framework == "torch"]
    tables = [_BASE.format(name=name, image=image) + _OF_TORCH for name in of_torch]
    return "".join([*tables, *(_BASE.format(name=name, image=image) for name in ("tensorflow-2.15", "debian-12"))])


@pytest.fixture(scope="module")
def reader(me: User, ground: Path, scratch: Path, python_image: Path) -> Iterator[Reader]:
    place = ground / "pages"
    checkout = place / "checkout"
    shutil.copytree(CHECKOUT, checkout, ignore=shutil.ignore_patterns(".*", "__pycache__", "tests", "*.sif"))
    (place / "home").mkdir()
    (checkout / "train.py").write_text("def with_gpu():\n    import torch\n\n\nprint('epoch', 1)\n")
    (checkout / "logs/train-42.log").write_text("Using device: cuda:0\n")
    (checkout / "requirements.txt").write_text("torch\npydot\n")
    (checkout / "project").mkdir()
    (checkout / "project/pyproject.toml").write_text(_PROJECT)
    (checkout / "defs/bases.toml").write_text(_stand_ins(checkout / "my.sif"))
    (checkout / "defs/keras-bert.toml").write_text(_KERAS_BERT)
    for name in ("my.sif", "trial.sif", "yesterday.sif"):
        (checkout / name).hardlink_to(python_image)
    # The cluster of the reader's site; what `ctk lab` starts is another one.
    name = f"pages-{os.getpid()}"
    me.ctk("lab", "up", "--name", name, "--nodes", "2", cwd=ground)
    try:
        shown = json.loads(me.ctk("lab", "env", "--name", name, "--json", cwd=ground).stdout)
        environment = {**me.environment, **shown["environment"]}
        environment |= {"HOME": str(place / "home"), "PATH": f"{me.program.parent}{os.pathsep}{os.environ['PATH']}"}
        del environment["CTK_HOME"]
        environment["XDG_CACHE_HOME"] = str(scratch / "pages-cache")
        with oci.serving(oci.Registry()) as registry:
            registry.both("pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime")
            yield Reader(place, environment, registry.address)
    finally:
        me.ctk("lab", "down", "--name", name, cwd=ground)
        subprocess.run(["rm", "-rf", str(place)], check=True)


def typed(line: str) -> str:
    """A line of script that ends the script where `line` does not end with a status that is right for it."""
    if line.startswith("apptainer build"):  # by itself it does not know the certificates of this machine
        line = f"APPTAINER_BIND={CA_BUNDLE} {line}"
    known = next((_STATUS[command] for command in _STATUS if command in line), None)
    if known is None:
        return line
    tests = " || ".join(f'[ "$status" -eq {status} ]' for status in known)
    return f"status=0; {line} || status=$?; {tests}"


def type_all(reader: Reader, lines: list[str]) -> None:
    done = reader.run(*map(typed, lines))
    if done.returncode != 0:
        for lab in ("lab", "class-2"):
            reader.run(f"ctk lab down --name {lab}")
    assert done.returncode == 0, done.stderr[-6000:]


def test_the_readme(reader: Reader) -> None:
    type_all(reader, [line for line in command_lines("README.md") if line not in NEVER_RUN])
    for _ in range(300):
        logs = list((reader.place / "checkout/logs").glob("keras-bert-*.log"))
        if logs and "epoch 1" in logs[0].read_text():
            return
        time.sleep(0.1)
    pytest.fail(f"the job's log is not there: {logs}")


def test_the_manual(reader: Reader) -> None:
    archive = "docker-archive:image.tar"
    layout = ["umoci init --layout layout", "umoci new --image layout:t", "mkdir root && cp /bin/busybox root/sh"]
    layout += ["umoci insert --image layout:t root /bin", f"skopeo copy --quiet oci:layout:t {archive}:image:latest"]
    done = reader.run("rm -f defs/mine.toml", *layout)
    assert done.returncode == 0, done.stderr
    type_all(reader, [line for line in command_lines("docs/manual.md") if line not in NEVER_RUN])


def test_the_quick_start(reader: Reader) -> None:
    type_all(reader, command_lines("docs/quickstart.md"))


def test_troubleshooting(reader: Reader) -> None:
    type_all(reader, command_lines("docs/troubleshooting.md"))


def test_the_page_of_clusters(reader: Reader) -> None:
    type_all(reader, command_lines("docs/clusters.md"))


def examples() -> Iterator[tuple[str, list[str]]]:
    """The examples in the help of each command, without the words behind them."""
    for entry in COMMANDS:
        command = load(entry)
        every = [command, *command.commands.values()] if isinstance(command, TyperGroup) else [command]
        for one in every:
            lines = re.findall(r"^ {4,}((?:ctk|eval) .*?)(?: {2,}.*)?$", one.help or "", re.MULTILINE)
            if lines:
                yield entry.name if one is command else f"{entry.name} {one.name}", lines


_PROJECT = """\
[project]
name = "grown"
version = "1"
dependencies = ["pyyaml"]

[project.optional-dependencies]
plots = ["pydot"]
"""
# What must be there before the examples of a command; between two of them; and what they leave behind.
_ADD = "ctk bases add pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime"
_BEFORE = {
    "bases check": [f"{_ADD} --name ours-2.8 --force"],
    "build": ["ctk new layered --base debian-12 --force", "ctk build layered --base my.sif -o a.sif --layered --force"],
    "diff": ["ctk build demo --sandbox -o trial-sandbox/", "ctk build trial-sandbox/ -o today.sif"],
    "inspect": ["ctk build keras-bert --base my.sif"],
    "new": ["rm -f defs/mine.*"],
    "lock": ["ctk new mine --base debian-12 --force", "ctk add mine pydot transformers"],
    "why": ["ctk new pytorch --base debian-12 --force", "ctk add pytorch torchvision"],
    "try": ["rm -f defs/mine.*", "ctk new mine --base debian-12", "ctk add mine pydot"],
    "doctor": ["rm -f ticket.txt"],
    "cluster detect": ["rm -f sbatch/clusters/mine.toml"],
    "lab env": ["ctk lab up --nodes 1"],
    "lab logs": ["ctk lab up --nodes 1"],
}
_BETWEEN = {"new": ["rm -rf defs/mine.toml defs/tuned.toml defs/tuned"]}
_AFTER = {
    "lab env": ["ctk lab down"],
    "lab logs": ["ctk lab down"],
    "lab up": ["ctk lab down --name lab", "ctk lab down --name class-2"],
}


def test_the_help(reader: Reader) -> None:
    """Each command's examples by themselves; builds that the pages show too are left to them."""
    shown = dict(examples())
    assert len(shown) > 15
    pages = {line for page in ("README.md", "docs/manual.md") for line in command_lines(page)}
    for name, lines in shown.items():
        script = list(_BEFORE.get(name, []))
        for line in lines:
            again = " build " in line and pages.issuperset(line.split(" && "))
            script += [*([] if again else [line]), *_BETWEEN.get(name, [])]
        type_all(reader, [*script, *_AFTER.get(name, [])])
