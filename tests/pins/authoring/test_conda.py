"""Environments of conda as package lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.pins.authoring.test_package_lists import BASES
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.conda import read_conda_environment
from toolkit.pins.authoring.proposal import propose_from_list
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def test_an_environment_of_conda(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(
        "name: x\nchannels: [a]\ndependencies:\n  - python=3.9\n  - pytorch::pytorch=2.6\n  - cudatoolkit=11.3\n"
        "  - numpy>=1.20,<2\n  - opencv\n  - scikit-learn==1.2.0\n  - _libgcc_mutex=0.1=main\n"
        "  - pandas=1.5.3=py39h1_0\n  - scipy 1.9.*\n  - pip:\n    - timm==0.9\n"
    )
    found = read_conda_environment(path)
    assert found.requirements == (
        "torch==2.6.*", "numpy>=1.20,<2", "opencv-python-headless", "scikit-learn==1.2.0",
        "pandas==1.5.3", "scipy==1.9.*",
        "timm==0.9",
    )  # fmt: skip
    assert not found.frozen
    proposal = propose_from_list(found.requirements, names(), knowledge(), BASES)
    assert proposal.base == "pytorch-2.6"
    assert proposal.packages == found.requirements[1:]


@pytest.mark.parametrize("build", ["", "=py39h1_0"])
def test_export_of_an_environment_has_exact_versions(tmp_path: Path, build: str) -> None:
    path = tmp_path / "environment.yml"
    entries = [f"package{number}=1.{number}.0{build}" for number in range(12)]
    more = {"pip": ["timm==0.9"]}
    path.write_text(json.dumps({"dependencies": [*entries, "python", more], "variables": {"A": "1"}, "prefix": "/x"}))
    found = read_conda_environment(path)
    assert found.frozen
    assert found.requirements == (*(f"package{number}==1.{number}.0" for number in range(12)), "timm==0.9")
    assert [line for line, _ in found.left_out] == ["python", "variables: A"]
    path.write_text(json.dumps({"dependencies": [*entries, "numpy>=1", "scipy", "six"]}))
    found = read_conda_environment(path)
    assert not found.frozen
    assert found.requirements[0] == ("package0==1.0.0" if build else "package0==1.0.0.*")


@pytest.mark.parametrize("text", ["a: [", "- x\n", "dependencies: numpy\n", ""])
def test_what_is_no_environment_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(text)
    with pytest.raises(WrongInput):
        read_conda_environment(path)


@pytest.mark.parametrize(
    ("entry", "requirement"),
    [
        ("pytorch=*=*cuda*", "torch"),
        ("pytorch * *cuda*", "torch"),
        ("pytorch>=2.0=*cuda*", "torch>=2.0"),
        ("pytorch=2.1=py3.10_cuda12.1_0", "torch==2.1"),
        ("pytorch 2.1.* cuda120*", "torch==2.1.*"),
        ("numpy=1.21*", "numpy==1.21.*"),
        ("numpy==1.21", "numpy==1.21"),
        ("numpy >=1.20, <2", "numpy>=1.20, <2"),
        ("librosa=0.10", "librosa==0.10.*"),
        ("conda-forge::librosa", "librosa"),
        ("pyg", "torch-geometric"),
    ],
)
def test_condas_spelling_in_pips(tmp_path: Path, entry: str, requirement: str) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(f'dependencies:\n  - "{entry}"\n')
    assert read_conda_environment(path).requirements == (requirement,)


@pytest.mark.parametrize("entry", ["libpng=1.6", "_openmp_mutex", "ffmpeg", "git", "nodejs=18", "gcc_linux-64"])
def test_what_is_no_python_package_is_left_out_with_a_word(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(f"dependencies:\n  - {entry}\n  - six\n")
    found = read_conda_environment(path)
    assert found.requirements == ("six",)
    assert [line for line, _ in found.left_out] == [entry]
