"""Logs of 1 GiB of several kinds: the peak memory and speed of `read_log`. `python -m tests.soak.logs --size 1024`.

Among them are those that are made to be slow: each takes less than a minute of processor time.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from tests.gpu.logs.test_reader import KINDS, MEASURE, MIB, SLOW, USED, content_of

_DIFFERENT = 8  # MiB of a kind whose lines all differ, which are then repeated: each MiB is looked at by itself


def measured(kind: str, mebibytes: int) -> tuple[int, float]:
    """Peak memory in KiB and seconds for a log of `mebibytes` that begins with one line of interest."""
    piece = (KINDS[kind] * (MIB // len(KINDS[kind]) + 1))[:MIB]
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", MEASURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False
    ) as reader:
        assert reader.stdin is not None
        assert reader.stdout is not None
        reader.stdin.write(USED.encode() + b"\n")
        for _ in range(mebibytes):
            reader.stdin.write(piece)
        reader.stdin.close()
        size, found, memory = map(int, reader.stdout.read().split())
    assert reader.returncode == 0
    assert (size, found) == (len(USED) + 1 + mebibytes * MIB, 1)
    return memory, time.monotonic() - begun


def processor_time(kind: str, mebibytes: int) -> float:
    """Seconds of a processor for a log of one of the kinds that are made to be slow."""
    piece = content_of(kind, _DIFFERENT * MIB)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, "-c", MEASURE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None
        for _ in range(0, mebibytes, _DIFFERENT):
            reader.stdin.write(piece)
        reader.stdin.close()
    assert reader.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Compare each kind at full size with 2 MiB of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=1024, help="MiB")
    mebibytes = parser.parse_args().size
    results = []
    for kind in KINDS:
        small, _ = measured(kind, 2)
        memory, seconds = measured(kind, mebibytes)
        assert memory < small + 8 * 1024, f"{kind}: {small} KiB for 2 MiB, {memory} KiB for {mebibytes} MiB"
        results.append(f"{kind}: {memory / 1024:.0f} MiB, {mebibytes / seconds:.0f} MiB/s")
    for kind in SLOW:
        seconds = processor_time(kind, mebibytes)
        assert seconds < 60 * mebibytes / 1024, f"{kind}: {seconds:.0f} s"
        results.append(f"{kind}: {seconds:.0f} s of a processor")
    print("; ".join(results))


if __name__ == "__main__":
    main()
