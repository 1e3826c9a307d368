"""Logs of 1 GiB of several kinds: the peak memory and speed of `read_log`. `python -m tests.soak.logs --size 1024`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from tests.gpu.logs.test_reader import KINDS, MEASURE, MIB, USED


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
    print("; ".join(results))


if __name__ == "__main__":
    main()
