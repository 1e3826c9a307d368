"""Random layouts of small shared libraries, loaded by the real ld.so and by the audit's model of it.

A layout is four directories and a symlink to one of them, five libraries with random needs, DT_RPATH or DT_RUNPATH,
some of them deleted or present twice, and an LD_LIBRARY_PATH. Then a process opens some: by path, as
`ctypes.CDLL` does, or by name from within a library, whose DT_RUNPATH then counts. After each step both say which files
are loaded.
"""

from __future__ import annotations

import json
import os
import posixpath
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from toolkit.gpu.loader import Loader
from toolkit.gpu.process import Process
from toolkit.inventory.formats.images import open_image

_DIRECTORIES = ("one", "two", "three/four", "five")
_NAMES = ("liba.so.1", "libb.so.2", "libc1.so", "libd.so.4", "libe.so.5")
_OPENER = """
extern void *dlopen(const char *, int);
int open_from_here(const char *name) { return dlopen(name, 2) != 0; }
"""
# Opens what it is told to, and prints after each step whether that worked and which of the layout's files are loaded.
_DRIVER = """
import ctypes, json, sys
root, steps = sys.argv[1], json.loads(sys.argv[2])
kept, told = {}, []
for opener, name in steps:
    try:
        if opener is None:
            kept[name] = ctypes.CDLL(name)
            done = True
        else:
            done = opener in kept and bool(kept[opener].open_from_here(name.encode()))
    except OSError:
        done = False
    loaded = {line.split()[-1] for line in open("/proc/self/maps") if root in line}
    told.append([done, sorted(loaded)])
print(json.dumps(told))
"""


@dataclass(frozen=True)
class Layout:
    """Libraries under `root`, what LD_LIBRARY_PATH says, and the steps: (opener's path or None, name or path)."""

    root: Path
    library_path: tuple[str, ...]
    steps: tuple[tuple[str | None, str], ...]

    def in_reality(self) -> list[tuple[bool, list[str]]]:
        """Whether each step worked, and what was loaded after it, by the real loader."""
        command = [sys.executable, "-ISc", _DRIVER, str(self.root), json.dumps(self.steps)]
        environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(self.library_path)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return [(worked, loaded) for worked, loaded in json.loads(done.stdout)]

    def by_the_model(self) -> list[tuple[bool, list[str]]]:
        """The same by ctk's reading of the files."""
        told = []
        with open_image(Path("/")) as rootfs:
            system = (*map(str, Path("/lib").glob("*-linux-gnu")), "/lib64", "/usr/lib64", "/lib", "/usr/lib")
            kept: set[str | None] = set()
            process = Process(Loader(rootfs, self.library_path, defaults=system))
            for opener, name in self.steps:
                asker = process.loaded(opener) if opener in kept else None
                worked = (opener is None or asker is not None) and all(
                    need.path is not None for need in process.open(name, asker)
                )
                if worked and opener is None:
                    kept.add(name)
                real = (rootfs.resolve(library.path) or "" for library in process.libraries)
                told.append((worked, sorted(path for path in real if path.startswith(str(self.root)))))
        return told


def prepare(parts: Path) -> Path:
    """What all layouts are made of: the code that opens a library, and one of each name to link with."""
    parts.mkdir(parents=True)
    (parts / "opener.c").write_text(_OPENER)
    subprocess.run(["gcc", "-c", "-fPIC", "-O1", "-o", parts / "opener.o", parts / "opener.c"], check=True)
    for name in _NAMES:
        _link(parts, parts / name, ["-soname", name])
    return parts


def make(root: Path, seed: str, parts: Path) -> Layout:
    """The layout of a seed under the directory `root`, which is made."""
    generator = random.Random(seed)  # noqa: S311
    for name in _DIRECTORIES:
        (root / name).mkdir(parents=True)
    root = root.resolve()
    (root / "link").symlink_to(generator.choice(_DIRECTORIES))
    libraries = [library for name in _NAMES for library in _placed(root, name, generator, parts)]
    present = [library for library in libraries if library.exists()] or [root / "one" / "nothing"]
    steps: list[tuple[str | None, str]] = []
    for _ in range(generator.randint(5, 9)):
        opened = [name for opener, name in steps if opener is None]
        if opened and generator.random() < 0.5:
            steps.append((generator.choice(opened), generator.choice(_NAMES)))
        else:
            steps.append((None, _through_a_link(root, str(generator.choice(present)), generator)))
    path = generator.sample((*_DIRECTORIES, "link", "nowhere"), generator.choice((0, 1, 1, 2)))
    return Layout(root, tuple(f"{root}/{directory}" for directory in path), tuple(steps))


def _placed(root: Path, name: str, generator: random.Random, parts: Path) -> list[Path]:
    """A library in one or two directories, each time with needs and a search path of its own; some are deleted."""
    places = []
    for directory in generator.sample(_DIRECTORIES, generator.choice((1, 2, 2, 3))):
        place = root / directory / name
        options = ["-soname", name] if generator.random() < 0.85 else []
        for needed in generator.sample([other for other in _NAMES if other != name], generator.choice((0, 1, 2, 2))):
            options += [str(parts / needed)]
        kind = generator.choice(("none", "none", "rpath", "rpath", "runpath", "runpath"))
        if kind != "none":
            search = [_entry(root, directory, generator) for _ in range(generator.choice((1, 2)))]
            options += [
                "--enable-new-dtags" if kind == "runpath" else "--disable-new-dtags",
                "-rpath",
                ":".join(search),
            ]
        _link(parts, place, options)
        if generator.random() < 0.15:
            place.unlink()
        places.append(place)
    return places


def _entry(root: Path, directory: str, generator: random.Random) -> str:
    other = generator.choice((*_DIRECTORIES, "link"))
    origin = generator.choice(("$ORIGIN", "${ORIGIN}"))
    return generator.choice((f"{root}/{other}", f"{origin}/{posixpath.relpath(other, directory)}", origin))


def _through_a_link(root: Path, path: str, generator: random.Random) -> str:
    target = (root / "link").readlink()
    if f"/{target}/" in path and generator.random() < 0.5:
        return path.replace(f"/{target}/", "/link/")
    return path


def _link(parts: Path, library: Path, options: list[str]) -> None:
    command = [
        "ld",
        "-shared",
        "--no-as-needed",
        "--allow-shlib-undefined",
        "-o",
        library,
        parts / "opener.o",
        *options,
    ]
    subprocess.run(command, check=True)
