"""Source distributions: what they need to be built."""

from __future__ import annotations

import io
import tarfile

import pytest

from tests.pins.bases.test_compiled import FLASH, MATURIN
from tests.pins.python_targets import TORCH
from toolkit.pins.bases.compiled import needs_of
from toolkit.pins.resolver.sources import SourceFiles, build_requirements, read_archive, refuse_other_python
from toolkit.support.errors import CheckFailed


def test_what_setup_py_imports_is_installed_to_build_it() -> None:
    content = SourceFiles({"setup.py": "import numpy\nfrom Cython.Build import cythonize\nimport torch"})
    needs = needs_of((), content.texts["setup.py"], None)
    assert build_requirements("x", content, needs) == ("cython", "numpy", "setuptools", "torch", "wheel")


@pytest.mark.parametrize(
    ("setup", "pyproject", "found"),
    [
        (FLASH, None, ("ninja", "packaging", "psutil", "setuptools", "torch", "wheel")),
        (FLASH, MATURIN, ("maturin>=1", "torch")),  # setuptools does not read it
        ("setup(setup_requires=['pytest-runner>=5', 'not a requirement', *more])", None, ("pytest-runner>=5",)),
        ("setup(setup_requires=('numpy',))\nimport numpy", None, ("numpy",)),
        ("setup(setup_requires=needed())", None, ()),
        ("setup(setup_requires=['six'])\nprint 'Python 2'", None, ()),
    ],
)
def test_what_setup_py_requires_is_installed_to_build_it(
    setup: str, pyproject: str | None, found: tuple[str, ...]
) -> None:
    content = SourceFiles({"setup.py": setup, "pyproject.toml": pyproject})
    wanted = set(found) | ({"setuptools", "wheel"} if pyproject is None else set())
    assert set(build_requirements("x", content, needs_of((), setup, pyproject))) == wanted


def test_requirements_are_read_from_what_setuptools_wrote_into_the_archive() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, text in {"x-1/setup.py": "import torch", "x-1/x.egg-info/requires.txt": "six\n\n[gpu]\ncupy"}.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    content = read_archive("x-1.tar.gz", buffer.getvalue())
    assert content.requires_txt == "six\n\n[gpu]\ncupy"
    assert content.names == {"setup.py", "x.egg-info/requires.txt"}
    assert content.texts["setup.py"] == "import torch"


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        ({"PKG-INFO": "Metadata-Version: 2.1\nName: x\nRequires-Python: >=3.7,<3.11\n"}, ">=3.7,<3.11"),
        ({"pyproject.toml": "[project]\nrequires-python = '<3.11'"}, "<3.11"),
        ({"PKG-INFO": "Requires-Python: >=3.7\n", "pyproject.toml": "[project]\nrequires-python = '<3.11'"}, None),
        ({"PKG-INFO": "Requires-Python: 3 or so\n"}, None),
        ({"pyproject.toml": "project = 1"}, None),
        ({"pyproject.toml": "["}, None),
        ({}, None),
    ],
)
def test_source_that_forbids_the_python_is_refused(texts: dict[str, str | None], refused: str | None) -> None:
    if refused is None:
        refuse_other_python("x 1", SourceFiles(texts), TORCH)
        return
    with pytest.raises(CheckFailed) as caught:
        refuse_other_python("x 1", SourceFiles(texts), TORCH)
    assert caught.value.message == f"x 1 requires Python {refused}; the base has Python 3.11.2"
