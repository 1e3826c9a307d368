"""Servers of the emulation of OpenPBS and Torque, each in a directory of its own."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.real.conftest import CHECKOUT
from toolkit.scheduler.programs import Scheduler

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Server:
    """An emulated server: the directory of its programs, and the variables that lead to it."""

    scheduler: Scheduler
    programs: Path
    place: Path
    environment: dict[str, str]


def pbs_server(
    place: Path, scheduler: Scheduler = Scheduler.OPENPBS, *, nodes: tuple[str, ...] = ("pbs1",), history: bool = True
) -> Server:
    """A new server in the directory `place`, which is also the home of its jobs."""
    programs = place / "bin"
    programs.mkdir(parents=True)
    # Other users cannot read the checkout.
    shutil.copytree(CHECKOUT / "tests/emulated_pbs", place / "lib/tests/emulated_pbs")
    for name in ("qsub", "qstat", "qdel", "pbsnodes"):
        words = (f"PYTHONPATH={place}/lib", "/usr/bin/python3", "-m", "tests.emulated_pbs", name)
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec /usr/bin/env {shlex.join(words)} "$@"\n')
        program.chmod(0o755)
    directory = place / "server"
    directory.mkdir()
    (directory / "nodes").write_text("\n".join(nodes))
    if history:
        (directory / "history").touch()
    if scheduler is Scheduler.TORQUE:
        (directory / "torque").touch()
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(place), "EMULATED_PBS": str(directory)}
    return Server(scheduler, programs, place, environment)
