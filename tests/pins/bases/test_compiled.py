"""What a source distribution needs to be built, by its files alone, and what is said where the base lacks it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.python_targets import TENSORFLOW, TORCH
from toolkit.inventory.formats.images import open_image
from toolkit.pins.bases.compiled import Needs, compile_note, find_tools, import_note, needs_of, tools

if TYPE_CHECKING:
    from pathlib import Path

# In the shape of fairseq, torch-scatter, flash-attn, mmcv, horovod, antlr4-python3-runtime, scipy, tokenizers and an
# old C extension.
FAIRSEQ = """
import os
from setuptools import Extension, setup
try:
    from torch.utils import cpp_extension
    extensions.extend([cpp_extension.CppExtension("x", sources=["a.cpp"])])
    if "CUDA_HOME" in os.environ:
        pass
except ImportError:
    pass
setup(ext_modules=extensions)
"""
SCATTER = """
import torch
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension
WITH_CUDA = torch.cuda.is_available() and CUDA_HOME is not None
if os.getenv('FORCE_CUDA', '0') == '1':
    WITH_CUDA = True
setup(ext_modules=get_extensions())
"""
FLASH = """
from packaging.version import parse
from setuptools import setup
import torch
from torch.utils.cpp_extension import BuildExtension, CUDAExtension, CUDA_HOME
class NinjaBuildExtension(BuildExtension):
    def __init__(self, *args, **kwargs) -> None:
        if not os.environ.get("MAX_JOBS"):
            import psutil
setup(ext_modules=ext_modules, setup_requires=["packaging", "psutil", "ninja"])
"""
MMCV = """
from pkg_resources import DistributionNotFound, get_distribution
from setuptools import find_packages, setup
def get_extensions():
    if os.getenv('FORCE_CUDA', '0') == '1':
        extension = CUDAExtension
try:
    import torch
    from torch.utils.cpp_extension import BuildExtension
except ModuleNotFoundError:
    cmd_class = {}
setup(ext_modules=get_extensions())
"""
HOROVOD = """
import textwrap
from setuptools import setup, Extension
from horovod import __version__
class CMakeExtension(Extension): pass
setup(ext_modules=[CMakeExtension("horovod.torch.mpi_lib_v2")])
"""
TORCH_BUILDS = ("torch", "torch.utils.cpp_extension")
MESON = '[build-system]\nbuild-backend = "mesonpy"\nrequires = ["meson-python", "Cython"]\n'
MATURIN = '[build-system]\nbuild-backend = "maturin"\nrequires = ["maturin>=1"]\n'


@pytest.mark.parametrize(
    ("files", "setup", "pyproject", "wanted"),
    [
        ("fairseq/a.cpp fairseq/b.cu fairseq/c.pyx", FAIRSEQ, None, Needs(("g++", "nvcc"))),
        ("csrc/a.cpp csrc/a.cu", FLASH, None, Needs(("g++", "nvcc"), ("packaging.version", *TORCH_BUILDS))),
        ("mmcv/a.cpp mmcv/a.cu", MMCV, None, Needs(("g++", "nvcc"), asks_for_gpu=True)),
        ("csrc/a.cpp csrc/a.cu", SCATTER, None, Needs(("g++", "nvcc"), TORCH_BUILDS, True)),
        ("CMakeLists.txt horovod/__init__.py horovod/a.cc", HOROVOD, None, Needs(("g++", "cmake"))),
        ("src/a.py docs/example.c", "from setuptools import setup\nsetup()", None, Needs()),
        ("scipy/a.pyx scipy/b.f scipy/c.cxx", None, MESON, Needs(("g++", "gfortran"))),
        ("Cargo.toml src/lib.rs", None, MATURIN, Needs(("cargo",))),
        ("a.c", "import numpy\nsetup(ext_modules=[Extension('a', ['a.c'])])", None, Needs(("gcc",), ("numpy",))),
        ("a.py", "print 'Python 2'", None, Needs()),
        ("a.py", None, "not [ toml", Needs()),
    ],
)
def test_compilers_are_found_from_files_and_setup_py(
    files: str, setup: str | None, pyproject: str | None, wanted: Needs
) -> None:
    assert needs_of(files.split(), setup, pyproject) == wanted


@given(st.text(), st.text(), st.lists(st.text()))
def test_no_file_of_a_source_distribution_is_an_error(setup: str, pyproject: str, files: list[str]) -> None:
    assert set(needs_of(files, setup, pyproject).tools) <= tools().keys()


def test_the_note_names_what_the_base_lacks_and_how_to_add_it() -> None:
    needs = Needs(("g++", "nvcc"), asks_for_gpu=True)
    bare = replace(TORCH, programs=frozenset())
    note = compile_note("mmcv 2.2.0", needs, bare, (), "mine")
    assert note == (
        "mmcv 2.2.0 has no wheel for this base and is compiled in the build, which needs a C++ compiler and for its "
        "CUDA code the CUDA compiler nvcc: the base does not have them. `ctk add --apt mine g++ python3-dev` installs "
        "these; images with `devel` in their tag have nvcc. No GPU is visible in a build: without FORCE_CUDA=1 no CUDA "
        "code is compiled"
    )
    unknown = compile_note("x 1", Needs(("gcc",)), TORCH, (), "mine") or ""
    assert "its programs are unknown" in unknown


@pytest.mark.parametrize(
    ("programs", "apt"),
    [({"g++"}, ()), (set(), ("g++",)), (set(), ("build-essential",)), (set(), ("g++=4:12.2.0-3",))],
)
def test_no_note_if_base_or_recipe_has_compiler(programs: set[str], apt: tuple[str, ...]) -> None:
    assert compile_note("x 1", Needs(("g++",)), replace(TORCH, programs=frozenset(programs)), apt, "mine") is None


def test_a_setup_py_that_imports_a_framework_needs_a_base_that_has_it() -> None:
    needs = Needs(("g++",), ("torch.utils.cpp_extension",))
    assert import_note("torch-scatter 2.1.2", needs, TORCH) is None
    assert "Start from a base with PyTorch" in (import_note("torch-scatter 2.1.2", needs, TENSORFLOW) or "")


def test_compilers_are_found_on_path_and_in_cuda_directory(tmp_path: Path) -> None:
    for path in ("usr/bin/gcc", "usr/local/cuda/bin/nvcc"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    with open_image(tmp_path) as rootfs:
        assert find_tools(rootfs) == {"gcc", "nvcc"}
