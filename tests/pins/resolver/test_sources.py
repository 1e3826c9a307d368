"""Source distributions: what they need to be built."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from typing import TYPE_CHECKING

import pytest

from tests.pins.bases.test_compiled import FLASH, MATURIN
from tests.pins.python_targets import TORCH
from toolkit.pins.bases.compiled import needs_of
from toolkit.pins.resolver import sources
from toolkit.pins.resolver.sources import SourceFiles, build_requirements, read_archive, refuse_other_python
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Callable


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
        *((hostile, None, ()) for hostile in ("\0", "(" * 10_000, "-" * 100_000 + "1", "x" + ".x" * 50_000, "x\ud800")),
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


def _tar(*members: tuple[str, bytes, int]) -> bytes:
    """A tar of members: the name, the type, and the size, which is claimed and not there."""
    blocks = b""
    for name, type_, size in members:
        member = tarfile.TarInfo(name)
        member.type, member.size = type_, size
        blocks += member.tobuf(tarfile.GNU_FORMAT)
    return blocks + bytes(200_000)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize(
    "content",
    [
        _tar(("x-1/setup.py", tarfile.REGTYPE, 150_000), ("x-1/PKG-INFO", tarfile.REGTYPE, 1)),
        _tar(("x-1/large", tarfile.REGTYPE, 500 << 30)),
        _tar(("x-1/header", tarfile.XHDTYPE, 500 << 30)),
        _tar(("x-1/name", tarfile.GNUTYPE_LONGNAME, 5 << 20)),
        b"",
        b"no archive",
    ],
)
def test_an_archive_that_expands_without_end_is_refused(
    compress: Callable[[bytes], bytes], content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_UNPACKED", 100_000)
    with pytest.raises(CheckFailed) as caught:
        read_archive("x-1.tar.gz", compress(content))
    assert caught.value.code == "unreadable-source"


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_an_archive_is_read_whatever_compressed_it(compress: Callable[[bytes], bytes]) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo(f"x-1/{'d' * 120}/setup.py")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
        member = tarfile.TarInfo("x-1/setup.py")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    content = read_archive("x-1.tar.gz", compress(buffer.getvalue()))
    assert content.texts == {"setup.py": "abc"}


def test_a_damaged_archive_is_refused() -> None:
    content = gzip.compress(_tar(("x-1/setup.py", tarfile.REGTYPE, 10)))
    for damaged in (content[:40], content[:30] + bytes(40) + content[70:], b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0"):
        with pytest.raises(CheckFailed):
            read_archive("x-1.tar.gz", damaged)
