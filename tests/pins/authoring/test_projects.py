"""Projects of a user's own: `pyproject.toml` and `setup.cfg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.authoring.projects import read_pyproject, read_setup_cfg
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = """
[build-system]
requires = ["setuptools>=64", "setuptools-scm"]
[project]
name = "My.Project"
dynamic = ["version"]
requires-python = ">=3.10"
dependencies = ["numpy<2", "torch==2.6.0 ; python_version >= '3.8'"]
[project.optional-dependencies]
test = ["pytest"]
all = ["my-project[test]", "pandas"]
"""


def test_pyproject_gives_dependencies_extras_and_the_project_itself(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(PROJECT)
    (tmp_path / "src" / "my_project").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    found, project = read_pyproject(path, ["all"])
    assert found.requirements == ("numpy<2", "torch==2.6.0 ; python_version >= '3.8'", "pandas", "pytest")
    assert project is not None
    assert project.files == (
        ("README.md", "/usr/src/my-project/README.md"),
        ("pyproject.toml", "/usr/src/my-project/pyproject.toml"),
        ("src", "/usr/src/my-project/src"),
    )
    assert project.requires_python == ">=3.10"
    assert project.post == ("SETUPTOOLS_SCM_PRETEND_VERSION=0 python3 -m pip install --no-deps /usr/src/my-project")


def test_project_without_code_is_not_installed(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text('[project]\nname = "x"\ndependencies = []\n')
    assert read_pyproject(path, [])[1] is None
    (tmp_path / "x.py").touch()
    project = read_pyproject(path, [])[1]
    assert project is not None
    assert project.paths == ("pyproject.toml", "x.py")


def test_dynamic_dependencies_of_setuptools_are_read_from_their_files(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    (tmp_path / "requirements.in").write_text("numpy\n# no\nscipy>=1\n")
    path.write_text(
        '[project]\nname = "x"\ndynamic = ["dependencies"]\n'
        '[tool.setuptools.dynamic]\ndependencies = {file = ["requirements.in"]}\n'
    )
    assert read_pyproject(path, [])[0].requirements == ("numpy", "scipy>=1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.poetry]\nname = 'x'\n", "Poetry"),
        ("[tool.black]\n", r"no \[project\] table"),
        ("[project]\nname = 'x'\ndynamic = ['dependencies']\n", "dynamic"),
        ("[project]\nname = 'x'\ndependencies = 'numpy'\n", "dependencies"),
        ("[project\n", "not TOML"),
        ("[project]\nname = 'x; id'\ndependencies = []\n", "not a valid project name"),
        ("[project]\nname = 'x'\n[project.optional-dependencies]\ngpus = []\n", 'Did you mean "gpus"'),
    ],
)
def test_pyproject_of_another_form_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    (tmp_path / "src").mkdir()
    with pytest.raises(WrongInput, match=words):
        read_pyproject(path, ["gpu"] if "gpus" in text else [])


def test_setup_cfg_gives_dependencies_extras_and_the_project(tmp_path: Path) -> None:
    path = tmp_path / "setup.cfg"
    path.write_text(
        "[metadata]\nname = mine\n[options]\npython_requires = >=3.8\ninstall_requires =\n    numpy<2\n"
        "    scipy ; python_version > '3'\n[options.extras_require]\nplot = matplotlib; seaborn\n"
    )
    (tmp_path / "mine").mkdir()
    found, project = read_setup_cfg(path, ["plot"])
    assert found.requirements == ("numpy<2", "scipy ; python_version > '3'", "matplotlib", "seaborn")
    assert project is not None
    assert project.paths == ("setup.cfg", "mine")
    path.write_text("[flake8]\nmax-line-length = 100\n")
    with pytest.raises(WrongInput, match="no dependencies"):
        read_setup_cfg(path, [])
