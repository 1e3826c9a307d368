"""Fair timing: each program in a virtual environment of its own, their runs interleaved, medians compared."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

CHECKOUT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Times:
    """The wall times of one command, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def fastest(self) -> float:
        return min(self.seconds)


def cache_directory() -> Path:
    """The cache directory of benchmarks; it may be deleted at any time."""
    directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ctk-bench"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The file of that name in the cache, created if it does not exist."""
    path = cache_directory() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        part = path.with_name(f"part-{path.name}")
        part.unlink(missing_ok=True)
        make(part)
        part.rename(path)
    return path


def debian_12(ctk: Path) -> Path:
    """An image of Debian 12 with Python, which every benchmark that needs a base starts from."""

    def build(image: Path) -> None:
        with TemporaryDirectory() as directory:
            (Path(directory) / "defs").mkdir()
            (Path(directory) / "defs/base.toml").write_text('base = "debian-12"\n')
            subprocess.run(
                [ctk, "build", "base", "--flat", "-o", image], cwd=directory, check=True, stdout=subprocess.DEVNULL
            )

    return kept("debian-12.sif", build)


def environment_of(*requirements: str) -> Path:
    """The `bin` directory of a virtual environment with only these; created once, then reused."""
    directory = cache_directory() / "+".join(requirements)
    done = directory / "complete"
    if not done.exists():
        _pip_install(directory, *requirements)
        done.touch()
    return directory / "bin"


def environment_of_ctk() -> Path:
    """The `bin` directory of a virtual environment with this checkout, installed as a wheel: as users have it."""
    directory = cache_directory() / "ctk"
    _pip_install(directory, str(CHECKOUT))
    return directory / "bin"


def _pip_install(directory: Path, *requirements: str) -> None:
    if not (directory / "bin" / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    pip = [directory / "bin" / "pip", "--disable-pip-version-check", "--quiet", "install"]
    subprocess.run([*pip, *requirements], check=True)


@contextlib.contextmanager
def variables(**values: str) -> Iterator[None]:
    """Set variables of this process in the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


def interleaved(
    commands: Mapping[str, Sequence[str | Path]], *, rounds: int = 31, directory: Path | None = None
) -> dict[str, Times]:
    """Run all commands in turn, `rounds` times, each round beginning with another one, after a round that warms up.

    What else the machine does then slows all of them alike. Raises CalledProcessError where a command fails.
    """
    names = list(commands)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(-1, rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            started = time.perf_counter()
            subprocess.run(commands[name], check=True, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True)
            if number >= 0:
                seconds[name].append(time.perf_counter() - started)
    return {name: Times(tuple(values)) for name, values in seconds.items()}
