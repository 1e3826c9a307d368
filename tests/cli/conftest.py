"""`ctk` as a user runs it: in an empty directory, with nobody's settings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.terminal import Terminal
from tests.inventory.making import distribution, fill, python_files
from tests.pins.bases import oci
from tests.pins.locks import SMALL
from tests.schemas import check_documents
from toolkit.cli.main import main
from toolkit.pins.lock.lockfile import write_lock
from toolkit.support.processes import trace_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


PROGRAM = Path(sys.executable).with_name("ctk")


@dataclass(frozen=True)
class Done:
    """A `ctk` that has ended."""

    status: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Ctk(ABC):
    """Runs `ctk` in `directory`; `environment` is all that it sees."""

    directory: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str | bytes | Path, status: int | None = 0, **env: str) -> Done:
        done = self.run(list(map(os.fsdecode, arguments)), {**self.environment, **env})
        assert "Traceback" not in done.stderr, done.stderr
        check_documents(done.stdout)
        if status is not None:
            assert done.status == status, f"{arguments}: status {done.status}\n{done.stdout}\n{done.stderr}"
        return done

    @abstractmethod
    def run(self, arguments: list[str], environment: dict[str, str]) -> Done: ...


class Program(Ctk):
    """In a process of its own."""

    def run(self, arguments: list[str], environment: dict[str, str]) -> Done:
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Function(Ctk):
    """In this process, which is ten times quicker: what would be a traceback fails the test at once."""

    patch: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def run(self, arguments: list[str], environment: dict[str, str]) -> Done:
        with self.patch.context() as patch:
            patch.chdir(self.directory)
            for name in os.environ:
                patch.delenv(name)
            for name, value in environment.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["ctk", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        output = self.captured.readouterr()
        return Done(int(ended.value.code or 0), output.out, output.err)


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    directory = tmp_path / "work"
    directory.mkdir()
    areas = {"HOME": str(tmp_path / "home"), "CTK_HOME": str(tmp_path / "area")}
    return directory, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **areas}


@pytest.fixture
def program(place: tuple[Path, dict[str, str]]) -> Ctk:
    return Program(*place)


@pytest.fixture
def ctk(
    place: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Ctk]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield Function(*place, monkeypatch, capfd)
    trace_with(None)  # `--trace` holds for the rest of a process
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def terminal() -> Iterator[Terminal]:
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.fixture
def on_a_terminal(terminal: Terminal, place: tuple[Path, dict[str, str]]) -> Callable[..., str]:
    """Runs `ctk` on a terminal of 80 columns."""
    directory, environment = place

    def shown(*arguments: str, **env: str) -> str:
        return terminal.show(arguments, directory, {**environment, "TERM": "xterm-256color", "COLUMNS": "80", **env})

    return shown


@pytest.fixture
def directory(ctk: Ctk) -> Path:
    """Where `ctk` runs: with a recipe, a script, and a lock."""
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/mine.toml").write_text('base = "debian-12"\npackages = ["numpy"]  # just this\n')
    (ctk.directory / "train.py").write_text("import torch, timm\n")
    write_lock(SMALL, ctk.directory / "defs/small.lock.toml")
    return ctk.directory


SITE = "usr/local/lib/python3.11/site-packages"


TORCH = {"torch/version.py": "__version__ = '2.13.0+cpu'\ncuda = None\n"}


def document(ctk: Ctk, *arguments: str | Path) -> dict[str, Any]:
    found = json.loads(ctk(*arguments, "--json", status=None).stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    wheel = distribution("torch", "2.13.0+cpu", SITE, TORCH)
    return fill(tmp_path / "sandbox", {**python_files(), **wheel})


@pytest.fixture
def registry() -> Iterator[oci.Registry]:
    with oci.serving(oci.Registry()) as served:
        yield served
