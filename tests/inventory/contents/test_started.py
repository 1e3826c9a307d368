"""Which Python a command or the runscript of an image starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.contents.test_environments import venv
from tests.inventory.making import fill, python_files
from toolkit.inventory.contents.read import read_inventory
from toolkit.inventory.contents.started import runscript, started_python
from toolkit.inventory.formats.images import open_image

if TYPE_CHECKING:
    from pathlib import Path

VENV = "/opt/venv/bin/python"
SYSTEM = "/usr/local/bin/python3.11"
CONDA = "/opt/conda/envs/gpu/bin/python3.11"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    conda = {
        **python_files("3.11", "opt/conda/envs/gpu"),
        "opt/conda/bin/conda": "",
        "opt/conda/condabin/conda": "-> ../bin/conda",
    }
    scripts = {
        "usr/local/bin/python": "-> python3.11",
        "opt/venv/bin/torchrun": f"#!{VENV}\nimport sys\n",
        "usr/local/bin/accelerate": "#!/usr/bin/env python3\n",
        "usr/bin/env": "\x7fELF",
        "opt/long/bin/train": f"#!/bin/sh\n'''exec' \"{VENV}\" \"$0\" \"$@\"\n' '''\n",
        "opt/run.sh": "#!/bin/bash\npython train.py\n",
        "usr/bin/bash": "\x7fELF",
    }
    return fill(tmp_path, {**python_files("3.11", "usr/local"), **venv("opt/venv"), **conda, **scripts})


def start(root: Path, words: list[str] | None = None, path: str = "/usr/local/bin:/usr/bin") -> str | None:
    with open_image(root) as rootfs:
        inventory = read_inventory(rootfs)
        found = started_python(rootfs, runscript(rootfs) if words is None else words, path, inventory.interpreters)
    return found.path if found else None


@pytest.mark.parametrize(
    ("command", "python"),
    [
        ("python train.py", SYSTEM), ("python3 -m train", SYSTEM), ("/opt/venv/bin/python train.py", VENV),
        ("/opt/venv/bin/torchrun train.py", VENV), ("accelerate launch train.py", SYSTEM),
        ("/opt/long/bin/train", VENV),
        ("exec env A=1 /opt/venv/bin/python x.py", VENV), ("/usr/bin/env python x.py", SYSTEM),
        ("/opt/conda/bin/conda run -n gpu python x.py", CONDA),
        ("/opt/conda/condabin/conda run -n gpu python x.py", CONDA),
        ("/opt/conda/bin/conda run -p /opt/conda/envs/gpu python x.py", CONDA),
        ("/opt/conda/bin/conda run -n other python x.py", None), ("bash run.sh", None), ("/opt/run.sh", None),
        ("./train", None), ("nothing", None), ("", None), ("torchrun train.py", None),
    ],
)  # fmt: skip
def test_command_starts_a_python(root: Path, command: str, python: str | None) -> None:
    assert start(root, command.split()) == python


def test_program_is_looked_for_on_path(root: Path) -> None:
    assert start(root, ["python"], "/opt/venv/bin:/usr/local/bin") == VENV
    assert start(root, ["torchrun"], "/opt/venv/bin") == VENV
    assert start(root, ["python"], "") is None


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("#!/bin/sh\nexec /opt/venv/bin/python \"$@\"\n", VENV),
        ("#!/bin/sh\ncd /srv\necho start\nexec /opt/venv/bin/python /srv/train.py \"$@\"\n", VENV),
        ("#!/bin/sh\nOCI_ENTRYPOINT='\"/opt/venv/bin/python\" \"/srv/train.py\"'\nOCI_CMD=''\nexec $OCI\n", VENV),
        ("#!/bin/sh\nOCI_ENTRYPOINT=''\nOCI_CMD='\"bash\"'\n", None),
        ("#!/bin/sh\nOCI_ENTRYPOINT=''\nOCI_CMD='\"python\" \"-m\" \"x\"'\n", SYSTEM),
        ("#!/bin/sh\nexec \"$@\"\n", None), ("exec 'unfinished", None), ("", None),
    ],
)  # fmt: skip
def test_runscript_starts_a_python(root: Path, text: str, python: str | None) -> None:
    fill(root, {".singularity.d/runscript": text})
    assert start(root) == python
