"""A stand-in for NVIDIA's driver libraries, compiled by gcc: what they answer is set in the environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCES = Path(__file__).parent / "data"


def compile_driver(directory: Path) -> Path:
    """Make libcuda.so.1 and libnvidia-ml.so.1 in `directory` and return it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("libcuda", "libnvidia-ml"):
        library = directory / f"{name}.so.1"
        named = f"-Wl,-soname,{library.name}"
        argv = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", named, "-o", library, _SOURCES / f"{name}.c"]
        subprocess.run(argv, check=True)
    return directory
