"""The first Ctrl-C, and the first SIGTERM, end `ctk lock` in each of its phases, whatever a server does."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import PROGRAM
from tests.hostile_server import dripping
from tests.pins.small_index import Holding
from tests.real.company import file_server, make_source, make_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Ctk

pytestmark = pytest.mark.index


@contextmanager
def waiting_for(ctk: Ctk, reached: threading.Event) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [PROGRAM, "lock", "mine"],
        cwd=ctk.directory,
        env=ctk.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert reached.wait(60), "the server was not asked"
        time.sleep(0.1)
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()


def write(directory: Path, recipe: str) -> None:
    (directory / "defs").mkdir(exist_ok=True)
    (directory / "defs/mine.toml").write_text(recipe)


def end(ctk: Ctk, child: subprocess.Popen[str], number: signal.Signals) -> None:
    start = time.monotonic()
    child.send_signal(number)
    _, errors = child.communicate(timeout=30)
    assert time.monotonic() - start < 2
    assert (child.returncode, errors.splitlines()[-1]) == (130, "Interrupted.")
    assert not _programs(ctk.directory)
    assert not list(ctk.directory.rglob(".ctk-work-*"))
    assert not (ctk.directory / "defs/mine.lock.toml").exists()


def _programs(directory: Path) -> list[str]:
    """Programs that still run for a command in `directory`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if bytes(directory) in words and b"uv" in words.split(b"\0")[0]:
            found.append(words.split(b"\0")[0].decode())
    return found


@pytest.mark.parametrize(
    ("client", "part", "base", "number"),
    [
        ("uv/", "simple/ctkone", "python-3.12", signal.SIGINT),
        ("Python-urllib", ".whl", "pytorch-2.6", signal.SIGINT),
        ("Python-urllib", ".tar.gz", "python-3.12", signal.SIGTERM),
    ],
)
def test_an_index_that_never_answers(
    ctk: Ctk, tmp_path: Path, client: str, part: str, base: str, number: signal.Signals
) -> None:
    index = tmp_path / "index"
    make_wheel(index, "ctkone", "1.0", "ctktwo")
    make_wheel(index, "ctktwo", "2.0")
    make_source(index, "ctksource", "3.0")
    Holding.held, Holding.reached = (client, part), threading.Event()
    with file_server(index, Holding) as address:
        write(
            ctk.directory,
            f'base = "{base}"\npackages = ["ctkone", "ctksource"]\n'
            f'[[index]]\nname = "small"\nurl = "{address}/simple"\n',
        )
        with waiting_for(ctk, Holding.reached) as child:
            end(ctk, child, number)


def test_a_registry_that_never_answers(ctk: Ctk) -> None:
    reached = threading.Event()
    with dripping(b"", b"", 0, reached) as host:
        write(ctk.directory, f'base = "docker://{host}/lab/thing:1.0"\npackages = ["ctkone"]\n')
        with waiting_for(ctk, reached) as child:
            end(ctk, child, signal.SIGINT)
