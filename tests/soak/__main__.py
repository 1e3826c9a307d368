"""`make soak`: the large counts. Runs every soak below and writes what was done into benchmarks/SOAK.md.

`python -m tests.soak images scripts` runs only these, and leaves the rows of the others as they are.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "SOAK.md"
_HEAD = "| soak | what | date | time | result |\n| --- | --- | --- | ---: | --- |"
_SEED = 1
_BUILD_ROUNDS = os.environ.get("CTK_BUILD_ROUNDS", "20")  # fewer where time is short; the row says how many


@dataclass(frozen=True)
class Soak:
    """One soak: what it is in words, with its count, and the command that does it."""

    name: str
    words: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


def _pytest(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "timeout=3600", *arguments)


SOAKS = (
    Soak(
        "images",
        f"10,000 damaged and hostile images, seed {_SEED}: a verdict or one clear error, 5 s and 300 MiB at most",
        (sys.executable, "-m", "tests.soak.images", "--seed", str(_SEED), "--count", "10000"),
    ),
    Soak(
        "layouts",
        "500 random layouts of libraries (DT_RPATH, DT_RUNPATH, LD_LIBRARY_PATH, symlinks, deleted files): the audit "
        "finds what the real loader finds",
        _pytest("tests/gpu/test_loader.py"),
        (("CTK_LOADER_LAYOUTS", "500"),),
    ),
    Soak(
        "lists",
        "20 lists of packages (pip freeze, conda, by hand) over a recorded index, three Pythons: each version of the "
        "list is in the lock, or the reason why not is right",
        _pytest("tests/pins/test_lists.py"),
        (("CTK_LISTS", "all"),),
    ),
    Soak(
        "logs",
        "logs of 1 GiB of 16 kinds through `ctk check-gpu --log`: no more memory than for 2 MiB, less than a minute",
        (sys.executable, "-m", "tests.soak.logs", "--size", "1024"),
    ),
    Soak(
        "loader",
        "torch 2.5.1 and newest, TensorFlow 2.15.1 and 2.16.1, JAX, whole and with libraries deleted: what the real "
        "loader misses in a container is what the audit calls missing; every recorded torch since 1.13: its "
        "architectures are those of `_cuda_getArchFlags()`",
        (sys.executable, "-m", "tests.soak.loader"),
    ),
    Soak(
        "choices",
        "every base with every GPU and 26 drivers: `ctk bases` offers it exactly if the audit of an image with its "
        "facts is not broken",
        _pytest("tests/gpu/test_fit.py"),
        (("CTK_ALL_QUESTIONS", "1"),),
    ),
    Soak(
        "recipes",
        "every shipped recipe is locked over its base as it is recorded, also those of source distributions",
        _pytest("tests/real/test_shipped_recipes.py", "-k", "recorded_base"),
        (("CTK_ALL_RECIPES", "1"),),
    ),
    Soak(
        "scripts",
        f"1,500 jobs of either sort, of the worst words there are, seed {_SEED}: what runs is what was asked",
        (sys.executable, "-m", "tests.soak.scripts", "--seed", str(_SEED), "--count", "1500"),
    ),
    Soak(
        "trees",
        f"300 random sequences of changes, up to three layers, seed {_SEED}: the tree of the layered image is that of "
        "the flat one, seen from inside and unpacked",
        (sys.executable, "-m", "tests.soak.layer_trees", "--seed", str(_SEED), "--count", "300"),
    ),
    Soak(
        "kills",
        "100 builds killed (SIGINT, SIGTERM, SIGKILL in turn), as root and as an ordinary user: the old image stays",
        _pytest("tests/real/test_build.py", "-k", "killed"),
        (("CTK_KILLED_BUILDS", "100"),),
    ),
    Soak(
        "disks",
        "30 layered builds, each with the disk of the image or of the work area full at a random moment: the old image "
        "stays, nothing is left behind, the next build is right",
        _pytest("tests/real/test_build_adversity.py", "-k", "any_moment"),
        (("CTK_FULL_DISKS", "30"),),
    ),
    Soak(
        "power",
        "66 power cuts on ext4 and XFS: images (layered, flat, `--force`, sandbox), recipes, locks and scripts are "
        "replaced; the device is copied at the rename, at the end of the command, and 38 times at random moments up "
        f"to 15 s later, seed {_SEED}: at the rename the old one or the new one is whole, from the end on the new one",
        _pytest("tests/real/test_power.py"),
        (("CTK_POWER_CUTS", "4"), ("CTK_POWER_SEED", str(_SEED))),
    ),
    Soak(
        "store",
        "two processes with one store publish and find at once, 20 rounds each with and without flock, as one host "
        f"and as two; 200 kills and 50 full disks at random moments, seed {_SEED}: every entry is right, nothing is "
        "left behind",
        (
            *(sys.executable, "-m", "tests.soak.store", "--seed", str(_SEED)),
            *("--rounds", "20", "--kills", "200", "--disks", "50"),
        ),
    ),
    Soak(
        "builds",
        "two processes with temporary directories of their own and one empty store build the same ten recipes at once, "
        f"{_BUILD_ROUNDS} rounds each with and without flock, as one host and as two, seed {_SEED}: every image is "
        "that of a build alone, no entry is damaged, nothing is left behind",
        (sys.executable, "-m", "tests.soak.builds", "--seed", str(_SEED), "--rounds", _BUILD_ROUNDS),
    ),
    Soak(
        "prune",
        f"the same while both also prune, 50 rounds each, seed {_SEED}: every entry that is found is right",
        (sys.executable, "-m", "tests.soak.store", "--seed", str(_SEED), "--rounds", "50", "--prune"),
    ),
    Soak(
        "signals",
        "46 jobs (what the program does with signals, one task or four, how it is ended) on each of three clusters, "
        "which track by cgroup, process group and parent: all that was printed is in the log, nothing is left",
        _pytest("tests/real/test_signals.py"),
        (("CTK_SIGNAL_CASES", "46"),),
    ),
    Soak(
        "bursts",
        "2,000 job scripts that get one to six signals at random moments, some at once: each is passed on",
        _pytest("tests/jobs/test_what_runs.py", "-k", "random_moments"),
        (("CTK_SIGNAL_RUNS", "2000"),),
    ),
    Soak(
        "saves",
        "20 jobs on each of Grid Engine and the emulated OpenPBS and Torque whose program reads new files of its image "
        "while it saves its work, after `s_rt` or `qdel`: each saves it, and no image stays mounted",
        _pytest("tests/real/test_qsub.py", "-k", "while_it_saves"),
        (("CTK_SAVES", "20"),),
    ),
    Soak(
        "labs",
        f"20 cycles of a lab: up, a job, down without a trace; 16 nodes, 200 jobs, 20 kills of nodes, seed {_SEED}: "
        "every job ends, and those that lost their node run again",
        _pytest("tests/real/test_lab_storm.py"),
        (("CTK_LAB_CYCLES", "20"), ("CTK_LAB_JOBS", "200"), ("CTK_LAB_KILLS", "20"), ("CTK_LAB_SEED", str(_SEED))),
    ),
)


def main(names: list[str]) -> int:
    """Run the named soaks, or all, and write the row of each when it ends; return 1 where one failed."""
    chosen = [soak for soak in SOAKS if not names or soak.name in names]
    failed = False
    for soak in chosen:
        print(f"== {soak.name}: {soak.words}", flush=True)
        started = time.monotonic()
        status = subprocess.run(soak.command, env={**os.environ, **dict(soak.environment)}, check=False).returncode
        failed = failed or status != 0
        today = datetime.datetime.now(datetime.timezone.utc).date()
        took = f"{time.monotonic() - started:.0f} s"
        _write(soak.name, f"| {soak.name} | {soak.words} | {today} | {took} | {'failed' if status else 'passed'} |")
    return int(failed)


def _write(name: str, row: str) -> None:
    """Put a row into the page; those of the soaks that were not run stay."""
    rows = {line.split("|")[1].strip(): line for line in _PAGE.read_text(encoding="utf-8").splitlines() if "|" in line}
    rows[name] = row
    machine = f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"
    table = "\n".join(rows[soak.name] for soak in SOAKS if soak.name in rows)
    text = f"# Soak\n\nWritten by `make soak`, {machine}.\n\n{_HEAD}\n{table}\n"
    _PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
