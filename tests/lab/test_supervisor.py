"""The supervisor as a program: it exits after its last child, even if nobody reads its answers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

from toolkit.lab import supervisor

MARK = str(1 << 60)


def test_supervisor_outlives_its_reader_and_waits_for_its_child(tmp_path: Path) -> None:
    """As if `ctk lab up` was interrupted after an order: a daemon whose supervisor exits would not be found."""
    argv = [sys.executable, "-I", "-S", str(Path(supervisor.__file__)), MARK]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    order = {"argv": ["sleep", "60"], "env": {"PATH": "/usr/bin:/bin"}, "cwd": "/", "output": str(tmp_path / "log")}
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.close()
    deadline = time.monotonic() + 20
    while not (children := psutil.Process(process.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.01)
    (child,) = children
    time.sleep(0.3)  # long enough to answer
    assert process.poll() is None
    child.kill()
    assert process.wait(20) == 0
