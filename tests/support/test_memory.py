"""The memory of a program and of what it starts, and the end of one that takes too much."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolkit.support.errors import ProgramFailed
from toolkit.support.memory import memory_ceiling, memory_of
from toolkit.support.processes import run_contained

MIB = 1 << 20
TAKES = "held = bytearray(b'x') * (80 << 20); print(len(held), flush=True)"


def test_memory_of_children_counts_and_that_of_an_ended_process_is_none() -> None:
    argv = [sys.executable, "-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"]
    with subprocess.Popen([*argv, f"{TAKES}; import time; time.sleep(100)"], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        assert 80 * MIB < memory_of(parent.pid) < 160 * MIB
        child = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text())
        os.kill(child, 9)
        parent.wait()
    assert memory_of(parent.pid) == 0


def test_pages_of_a_file_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(80 * MIB))
    reads = "import mmap, sys; m = mmap.mmap(open(sys.argv[1]).fileno(), 0, prot=mmap.PROT_READ); m.find(b'x'); input()"
    argv = [sys.executable, "-c", f"{reads.removesuffix('input()')}print(1, flush=True); input()", tmp_path / "file"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        reader.stdout.readline()
        assert memory_of(reader.pid) < 40 * MIB


def test_program_that_takes_too_much_is_stopped_with_its_children(tmp_path: Path) -> None:
    grows = "held = []\nwhile True: held.append(bytearray(b'x') * (1 << 20))"
    started = time.monotonic()
    script = f'"{sys.executable}" -c "$1" & echo $! > {tmp_path}/pid; wait'
    with pytest.raises(ProgramFailed, match=r"sh took more than 100\.0 MiB of memory") as raised:
        run_contained(["sh", "-c", script, "sh", grows], timeout=60, memory=100 * MIB)
    assert raised.value.code == "program-memory"
    assert time.monotonic() - started < 30
    child = int((tmp_path / "pid").read_text())
    while memory_of(child) and time.monotonic() - started < 30:  # the kernel takes time to free it
        time.sleep(0.01)
    assert memory_of(child) == 0


def test_program_below_the_limit_runs_to_its_end() -> None:
    script = f"{TAKES}; import time; time.sleep(0.5)"
    assert run_contained([sys.executable, "-c", script], memory=400 * MIB).stdout == f"{80 * MIB}\n"


def test_ceiling_is_half_of_a_small_host() -> None:
    assert 0 < memory_ceiling() <= 4 << 30
