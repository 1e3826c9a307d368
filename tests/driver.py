"""Stand-ins for the libraries of GPU drivers, compiled by gcc.

What they answer is set in the environment, or compiled in: a container that is isolated gets no variables.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCES = Path(__file__).parent / "data"


def compile_driver(directory: Path, libraries: tuple[str, ...] = ("libcuda", "libnvidia-ml"), **settings: str) -> Path:
    """Make libcuda.so.1 and libnvidia-ml.so.1 in `directory` and return it."""
    for name in libraries:
        compile_library(directory / f"{name}.so.1", **settings)
    return directory


def compile_library(library: Path, *options: str | Path, **settings: str) -> Path:
    """Make one library of the source of its name; `settings` are those that the source names."""
    library.parent.mkdir(parents=True, exist_ok=True)
    name = library.name.partition(".so")[0]
    baked = ";".join(f"{key}={value}" for key, value in settings.items())
    argv = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", f'-DSETTINGS="{baked}"', f"-Wl,-soname,{library.name}"]
    subprocess.run([*argv, "-o", library, _SOURCES / f"{name}.c", *options], check=True)
    return library


def needing_newer_glibc(directory: Path) -> Path:
    """A libcuda.so.1 that asks for GLIBC_2.99, which no image has: linked with a libc.so.6 that claims it."""
    claim = directory / "claim"
    claim.mkdir(parents=True)
    (claim / "libc.c").write_text("int ctk_of_a_newer_glibc(void) { return 0; }\n")
    (claim / "versions").write_text("GLIBC_2.99 { global: ctk_of_a_newer_glibc; };\n")
    named = ["-Wl,-soname,libc.so.6", f"-Wl,--version-script={claim / 'versions'}"]
    argv = ["gcc", "-shared", "-fPIC", "-nostdlib", *named, "-o", claim / "libc.so.6", claim / "libc.c"]
    subprocess.run(argv, check=True)
    (claim / "use.c").write_text(
        "int ctk_of_a_newer_glibc(void);\nint cuInit(unsigned flags) { return flags + ctk_of_a_newer_glibc(); }\n"
    )
    library = directory / "libcuda.so.1"
    linked = ["-nostdlib", "-Wl,-soname,libcuda.so.1", "-o", library, claim / "use.c", claim / "libc.so.6"]
    subprocess.run(["gcc", "-shared", "-fPIC", *linked], check=True)
    return directory
