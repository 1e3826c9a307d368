"""Dumps of environments: what conda and pip write keeps its names and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.authoring.dumps import pinned_file
from toolkit.pins.authoring.package_lists import read_requirements

if TYPE_CHECKING:
    from pathlib import Path

PIP_LIST = (
    "Package    Version Editable project location\n---------- ------- ---\nnumpy      1.26.4\nmine  0.1  /home/x\n"
)
CONDA_LIST = (
    "# packages in environment at /opt/conda:\n#\n# Name                    Version                   Build  Channel\n"
    "_libgcc_mutex             0.1                        main  \nnumpy                     1.26.4          py311_0 x\n"
    "timm                      0.9.2                    pypi_0    pypi\n"
    "pytorch                   2.5.1   py3.11_cuda12.4_cudnn9.1.0_0    pytorch\n"
)
CONDA_EXPORT = (
    "# This file may be used to create an environment using:\n# $ conda create --name <env> --file <this file>\n"
    "# platform: linux-64\n_libgcc_mutex=0.1=main\nnumpy=1.26.4=py311h_0\npytorch=2.5.1=cuda_0\ntimm=0.9.2=pypi_0\n"
)
CONDA_EXPLICIT = (
    "# platform: linux-64\n@EXPLICIT\nhttps://conda.anaconda.org/conda-forge/linux-64/_libgcc_mutex-0.1-main.conda\n"
    "https://conda.anaconda.org/conda-forge/linux-64/numpy-1.26.4-py311_0.conda#0123\n"
    "https://conda.anaconda.org/pytorch/linux-64/pytorch-2.5.1-py3.11_cuda_0.tar.bz2\n"
)


@pytest.mark.parametrize(
    ("text", "requirements", "left_out"),
    [
        (PIP_LIST, ["numpy==1.26.4"], 1),
        (CONDA_LIST, ["numpy==1.26.4", "timm==0.9.2", "torch==2.5.1"], 1),
        (CONDA_EXPORT, ["numpy==1.26.4", "torch==2.5.1", "timm==0.9.2"], 1),
        (CONDA_EXPLICIT, ["numpy==1.26.4", "torch==2.5.1"], 1),
    ],
)
def test_listing_keeps_names_and_versions(tmp_path: Path, text: str, requirements: list[str], left_out: int) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    found = read_requirements(path)
    assert list(found.requirements) == requirements
    assert len(found.left_out) == left_out
    assert found.frozen


def test_freeze_of_conda_keeps_every_name_and_says_which_versions_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "numpy @ file:///croot/numpy_and_numpy_base_1672336185480/work\n"
        "scipy @ file:///home/conda/feedstock_root/build_artifacts/scipy_17/work/dist/scipy-1.11.4-cp311-cp311-linux_x86_64.whl#sha256=0\n"
        "six @ file:///tmp/build/80754af9/six_1644875935023/work ; python_version > '3'\n"
        "torch==2.5.1\nmine @ file:///home/ann/mine\n"
    )
    found = read_requirements(path)
    assert found.requirements == ("numpy", "scipy==1.11.4", "six", "torch==2.5.1")
    assert [line for line, _ in found.left_out] == ["mine @ file:///home/ann/mine"]
    assert [(note.code, note.message.partition(": ")[2]) for note in found.notes] == [("no-version", "numpy, six")]


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("file:///x/numpy-1.26.4.tar.gz", "numpy==1.26.4"),
        ("file:///x/other-1.0-py3-none-any.whl", None),
        ("file:///home/ann/numpy", None),
        ("file:///opt/conda/conda-bld/numpy_16/work", "numpy"),
    ],
)
def test_file_of_a_freeze_counts_only_where_its_origin_is_known(url: str, line: str | None) -> None:
    assert pinned_file("numpy", url) == line


def test_credentials_of_an_index_never_reach_the_list(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        "--index-url https://ann:secret@pypi.corp.example:8443/simple\n--extra-index-url=https://pypi.corp.example/two\n"
        "-f http://127.0.0.1/files\n--find-links ./wheels\nnumpy\n"
    )
    found = read_requirements(path)
    assert [(index.name, index.url, index.kind) for index in found.indexes] == [
        ("pypi-corp-example", "https://pypi.corp.example:8443/simple", "index"),
        ("pypi-corp-example-2", "https://pypi.corp.example/two", "index"),
        ("127-0-0-1", "http://127.0.0.1/files", "find-links"),
    ]
    assert [line for line, _ in found.left_out] == ["--find-links ./wheels"]
    assert "secret" not in repr(found)
    assert "UV_INDEX_PYPI_CORP_EXAMPLE_USERNAME" in str(found.notes[0].fix)
