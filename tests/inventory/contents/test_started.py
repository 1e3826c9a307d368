"""Which Python a command or the runscript of an image starts."""

from __future__ import annotations

import shlex
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
        "opt/conda/envs/gpu/bin/python": "-> python3.11",
        "opt/conda/bin/conda": "",
        "opt/conda/condabin/conda": "-> ../bin/conda",
    }
    scripts = {
        "usr/local/bin/python": "-> python3.11",
        "opt/venv/bin/torchrun": f"#!{VENV}\nimport sys\n",
        "usr/local/bin/accelerate": "#!/usr/bin/env python3\n",
        "usr/local/bin/elsewhere": f"#!{VENV}\nimport sys\n",
        "usr/local/bin/uv": "\x7fELF" + "x" * 200_000,
        "opt/unpacks.sh": "#!/bin/bash\nexec /opt/venv/bin/python train.py\n" + "x" * 200_000,
        "opt/split.py": "#!/usr/bin/env -S /opt/venv/bin/python -u\n",
        "opt/activates.sh": "#!/bin/bash\nset -e\nsource /opt/venv/bin/activate\npython train.py\necho done\n",
        "opt/entry.sh": '#!/bin/bash\n. /opt/venv/bin/activate\nexec "$@"\n',
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
        ("/opt/venv/bin/torchrun train.py", VENV),
        ("/opt/unpacks.sh", VENV), ("uv pip list", None), ("accelerate launch train.py", SYSTEM),
        ("/opt/long/bin/train", VENV),
        ("exec env A=1 /opt/venv/bin/python x.py", VENV), ("/usr/bin/env python x.py", SYSTEM),
        ("/opt/conda/bin/conda run -n gpu python x.py", CONDA),
        ("/opt/conda/condabin/conda run -n gpu python x.py", CONDA),
        ("/opt/conda/bin/conda run -p /opt/conda/envs/gpu python x.py", CONDA),
        ("/opt/conda/bin/conda run -n other python x.py", None), ("bash run.sh", None), ("/opt/run.sh", SYSTEM),
        ("./train", None), ("nothing", None), ("", None), ("torchrun train.py", None),
        ("elsewhere train.py", VENV), ("uv run train.py", None), ("/opt/split.py", VENV),
        ("env -u A B=1 /opt/venv/bin/python x.py", VENV), ("env -S '/opt/venv/bin/python -u' x.py", VENV),
        ("/usr/bin/tini -g -- /opt/venv/bin/python x.py", VENV), ("dumb-init -- python x.py", SYSTEM),
        ("nice -n 10 /opt/venv/bin/python x.py", VENV), ("timeout -s KILL 3600 /opt/venv/bin/python", VENV),
        ("numactl --cpunodebind=0 -m 0 /opt/venv/bin/python", VENV), ("mpirun -np 4 /opt/venv/bin/python x", VENV),
        ("sh -c 'exec /opt/venv/bin/python x.py'", VENV), ("bash -lc '. /opt/venv/bin/activate && python x'", VENV),
        ("bash -o pipefail -c 'python x.py'", SYSTEM), ("bash -c", None), ("bash", None),
        ("bash /opt/activates.sh", VENV), ("/opt/activates.sh", VENV), ("/opt/entry.sh python x.py", VENV),
        ("bash /opt/entry.sh", None), ("sh /opt/long/bin/train", VENV),
        ("/opt/conda/bin/conda run --live-stream --name=gpu python x.py", CONDA),
        ("/opt/conda/bin/conda run --cwd /srv -n gpu /opt/venv/bin/python x.py", VENV),
        ("/opt/conda/bin/conda run -n gpu ./train", CONDA),
    ],
)  # fmt: skip
def test_command_starts_a_python(root: Path, command: str, python: str | None) -> None:
    assert start(root, shlex.split(command)) == python


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
        ("#!/bin/sh\n. /opt/venv/bin/activate\npython x.py\n", VENV),
        ("#!/bin/sh\nexport PATH=\"/opt/venv/bin:$PATH\"\nexec python x.py\n", VENV),
        ("#!/bin/sh\nPATH=$HOME/bin:$PATH\npython x.py\n", None),
        ("#!/bin/sh\n/opt/venv/bin/python x.py\necho done\n", VENV),
        ("#!/bin/sh\ncd /srv && exec /opt/venv/bin/python x.py\n", VENV),
        ("#!/bin/sh\npython - <<EOF\nimport torch\nEOF\n", SYSTEM),
        ("#!/bin/sh\nif test -e /x; then exec /opt/venv/bin/python x; else exec python x; fi\n", None),
        ("#!/bin/sh\ncase $1 in train) exec /opt/venv/bin/python x;; *) exec \"$@\";; esac\n", VENV),
        ("#!/bin/bash\neval \"$(conda shell.bash hook)\"\nconda activate gpu\npython x.py\n", CONDA),
        ("#!/bin/bash\nconda activate other\npython x.py\n", None),
        ("#!/bin/bash\nsource /opt/conda/bin/activate gpu\npython x.py\n", CONDA),
        ("OCI_ENTRYPOINT='\"/bin/sh\" \"-c\" \"exec /opt/venv/bin/python x.py\"'\nOCI_CMD=''\n", VENV),
        ("OCI_ENTRYPOINT='\"/opt/entry.sh\"'\nOCI_CMD='\"python\" \"x.py\"'\n", VENV),
    ],
)  # fmt: skip
def test_runscript_starts_a_python(root: Path, text: str, python: str | None) -> None:
    fill(root, {".singularity.d/runscript": text})
    assert start(root) == python


def test_scripts_that_start_one_another_end(root: Path) -> None:
    again = " ".join(["/opt/again.sh"] * 200)
    fill(root, {"opt/again.sh": f'#!/bin/sh\nnice {again} "$@" "$@"\n' * 20, "usr/bin/nice": "\x7fELF"})
    assert start(root, ["nice"] * 500 + ["/opt/again.sh"] * 100) is None
