"""`ctk new --from PATH`: notebooks, unparsable scripts, and what is refused with the way to go."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.pins.authoring.few_bases import BASES
from toolkit.pins.authoring.reading import Bases, propose
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.authoring.proposal import Proposal
    from toolkit.pins.index.uv import Uv


def no_uv() -> Uv:
    raise AssertionError("no index may be asked here")


def read(source: Path) -> Proposal:
    return propose(source, Bases(BASES), no_uv)


def notebook(path: Path, *cells: str) -> Path:
    written = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "import no"}, *written], "nbformat": 4}))
    return path


def test_script_without_a_framework_asks_for_no_gpu(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import sklearn\n")
    proposal = read(script)
    assert (proposal.base, proposal.uses_gpu, proposal.command) == ("debian-12", False, ("python", str(script)))
    script.write_text("import torch\n")
    assert read(script).uses_gpu
    assert read(tmp_path).command == ("python", str(script))


def test_notebook_gives_imports_and_what_its_cells_install(tmp_path: Path) -> None:
    path = notebook(
        tmp_path / "a.ipynb",
        "%matplotlib inline\n%pip install -q timm==0.9.2 'pandas<3'\n!pip3 install -i https://x.example/simple mylib",
        "!{sys.executable} -m pip install seaborn && echo done\nimport torch, pandas\nfiles = !ls\npd?\n",
        "%%bash\nimport nothing in this language\n",
        "%%time\nfrom sklearn import svm\nawait svm\nx = (5\n     % 3)\n",
    )
    proposal = read(path)
    assert proposal.base == "pytorch-2.6"
    assert set(proposal.packages) == {"timm==0.9.2", "pandas<3", "mylib", "seaborn", "scikit-learn"}
    assert [index.url for index in proposal.indexes] == ["https://x.example/simple"]
    assert proposal.command == ()


@pytest.mark.parametrize(
    ("cell", "words"), [("x = 1\nprint 'python 2'\n", r"a\.ipynb: cell 1, line 2"), ("def f(:\n  %magic\n", "line 1")]
)
def test_notebook_that_cannot_be_parsed_is_an_error_with_cell_and_line(tmp_path: Path, cell: str, words: str) -> None:
    with pytest.raises(WrongInput, match=words):
        read(notebook(tmp_path / "a.ipynb", cell))


def test_script_that_cannot_be_parsed_is_an_error_with_its_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import numpy\nprint 'python 2'\n")
    with pytest.raises(WrongInput, match=r"train\.py, line 2") as refused:
        read(script)
    assert refused.value.code == "unparsable-script"
    (tmp_path / "good.py").write_text("import pandas\n")
    proposal = read(tmp_path)
    assert proposal.packages == ("pandas",)
    assert [finding.code for finding in proposal.findings] == ["unread-file"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("Dockerfile", "FROM python\nRUN pip install -r requirements.txt\n", "--from .*requirements.txt"),
        ("gpu.dockerfile", "FROM python\n", "docker save"),
        ("Containerfile", "FROM python\n", "docker-archive:mine.tar"),
        ("setup.py", "from setuptools import setup\n", "pyproject.toml"),
        ("Pipfile", "", "pipenv requirements"),
        ("poetry.lock", "", "poetry export"),
        ("uv.lock", "", "pyproject.toml"),
        ("data.csv", "", "notebook"),
    ],
)
def test_unsupported_file_is_refused_with_fix(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / "requirements.txt").touch()
    (tmp_path / name).write_text(text)
    with pytest.raises(WrongInput) as refused:
        read(tmp_path / name)
    assert refused.value.fix is not None

    assert re.search(words, refused.value.fix)


def test_extras_belong_to_projects(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    with pytest.raises(WrongInput, match="--extra"):
        propose(tmp_path / "train.py", Bases(BASES), no_uv, ["gpu"])


def test_replaced_framework_version_is_reported_and_unpins_companions(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text("dependencies:\n- pytorch=2.5.1\n- torchvision==0.20.1\n- numpy==1.26.4\n")
    proposal = read(path)
    assert proposal.packages == ("torchvision", "numpy==1.26.4")
    said = {finding.code: finding.message for finding in proposal.findings}
    assert said["other-version"].startswith("torch==2.5.1.* is replaced by version 2.6.0 of the base pytorch-2.6")
    assert "torchvision==0.20.1" in said["version-left-open"]


def test_project_with_other_python_than_base_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\nname = "mine"\nrequires-python = ">=3.12"\ndependencies = ["torch"]\n')
    (tmp_path / "src").mkdir()
    proposal = read(path)
    assert proposal.project is not None
    assert [finding.code for finding in proposal.findings] == ["project-installed", "other-python"]
