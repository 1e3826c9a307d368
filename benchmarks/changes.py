"""One change to a recipe of 60 packages over PyTorch: `ctk build`, with plain `apptainer build` of the same definition.

`python -m benchmarks.changes` writes its section of RESULTS.md alone. CTK_BENCH_BASE names another base with PyTorch.
`python -m benchmarks.changes --fast` prints what ctk takes, without the plain build, and writes nothing.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.audit import torch_base
from benchmarks.layers import CA_BUNDLE, measured
from benchmarks.measure import debian_12, environment_of_ctk, variables
from benchmarks.run import replace_section
from benchmarks.section import Section, Table, Target
from toolkit import __version__
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAMES = """
accelerate aiohttp attrs click cloudpickle colorlog datasets einops fsspec h5py httpx huggingface-hub
hydra-core imageio ipython jinja2 joblib jsonschema lightning-utilities loguru matplotlib more-itertools
msgpack networkx nltk numexpr omegaconf orjson pandas patsy pillow psutil pyarrow pydantic pytest pyyaml
regex requests rich safetensors scikit-image scikit-learn scipy seaborn sentencepiece sortedcontainers
statsmodels sympy tabulate tensorboard termcolor threadpoolctl tokenizers toml torchmetrics tqdm transformers
typer wandb xarray
"""
_PACKAGES = tuple(_NAMES.split())
_ADDED = ("humanize", "tinydb", "docopt-ng")  # pure Python, and nothing that the others lack
_FILE = '[[files]]\nfrom = "notes.txt"\nto = "/opt/notes.txt"\n'
_TARGETS = {"the first file": 5.0, "a changed file": 4.0, "one more package": 6.0}
_WORDS = f"""\
A recipe of {len(_PACKAGES)} packages over an image with PyTorch is built, then it is changed and built again: a first
entry of `[[files]]`, another content of that file, and one more package of pure Python, which has no layer yet. The
figures are medians of {len(_ADDED)} runs, each with another file or package; they include the choice of versions, the
guard, the imports and the audit. By hand: `apptainer build --fakeroot` of the text that `ctk def` prints for the last
recipe, one run; it installs and imports all packages and packs the whole image. Load is the mean number of processes
that wanted a processor in the minute before the end of the measurement (`uptime`): above the number of cores, other
programs slowed all figures."""


def run() -> Section:
    """Build the recipe once, then measure each change, and the plain build."""
    if CA_BUNDLE.is_file():  # plain apptainer needs the certificates of this machine; ctk finds them
        os.environ["APPTAINER_BIND"] = f"{CA_BUNDLE}"
    with _project() as (ctk, base, work):
        seconds = _changes(ctk, base, work)
        by_hand = _by_hand(ctk, work)
    rows = [(f"{what}", f"{_median(found):.1f}", f"{min(found):.1f}") for what, found in seconds.items()]
    size = base.stat().st_size / 10**9
    return Section(
        "One change to a recipe of 60 packages",
        _WORDS,
        (
            Table(
                f"A base of {size:.2f} GB; {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}",
                ("change", "median, s", "fastest, s", "by hand ÷ median"),
                tuple((*row, f"{by_hand / _median(seconds[row[0]]):.0f}") for row in rows),
            ),
            Table("By hand", ("command", "s"), (("`apptainer build --fakeroot`", f"{by_hand:.1f}"),)),
        ),
        tuple(
            Target(f"{what} within {most:.0f} s: {_median(seconds[what]):.1f} s", _median(seconds[what]) <= most)
            for what, most in _TARGETS.items()
        ),
        (f"ctk {__version__}", find_runtime(load_site()).version_text),
    )


def print_fast() -> None:
    """Measure each change without the plain build, and print the times beside their targets."""
    with _project() as (ctk, base, work):
        seconds = _changes(ctk, base, work)
    for what, found in seconds.items():
        target = f", target {_TARGETS[what]:.0f} s" if what in _TARGETS else ""
        print(f"{what}: median {_median(found):.1f} s, fastest {min(found):.1f} s{target}")


@contextlib.contextmanager
def _project() -> Iterator[tuple[Path, Path, Path]]:
    """The program of ctk, the base, and the directory of an empty project with a work area of its own."""
    ctk = environment_of_ctk() / "ctk"
    chosen = os.environ.get("CTK_BENCH_BASE")
    base = Path(chosen) if chosen else torch_base(debian_12(ctk))
    with TemporaryDirectory(dir=os.environ.get("CTK_BENCH_TMP")) as name, variables(CTK_HOME=f"{name}/area"):
        work = Path(name) / "project"
        (work / "defs").mkdir(parents=True)
        yield ctk, base, work


def _changes(ctk: Path, base: Path, work: Path) -> dict[str, list[float]]:
    """The seconds of each run, by the change."""
    seconds: dict[str, list[float]] = defaultdict(list)

    def build(what: str, packages: Sequence[str], content: str | None) -> None:
        listed = ", ".join(f'"{package}"' for package in packages)
        text = f'base = "{base}"\npackages = [{listed}]\n'
        (work / "defs/bench.toml").write_text(text + (_FILE if content is not None else ""))
        (work / "defs/notes.txt").write_text(content or "")
        seconds[what].append(measured([ctk, "build", "bench", "-o", "bench.sif", "--layered"], work).seconds)
        print(f"bench: {what}: {seconds[what][-1]:.1f} s", file=sys.stderr, flush=True)

    build("the whole recipe", _PACKAGES, None)
    for number in range(len(_ADDED)):
        build("the first file", _PACKAGES, f"first {number}")
        build("no file again", _PACKAGES, None)
    build("a file", _PACKAGES, "a file")
    for number in range(len(_ADDED)):
        build("a changed file", _PACKAGES, f"changed {number}")
    for number in range(len(_ADDED)):
        build("one more package", [*_PACKAGES, *_ADDED[: number + 1]], None)
    return {what: seconds[what] for what in ("the whole recipe", *_TARGETS)}


def _by_hand(ctk: Path, work: Path) -> float:
    text = subprocess.run([ctk, "def", "bench"], cwd=work, check=True, capture_output=True, text=True).stdout
    (work / "hand.def").write_text(text)
    return measured(["apptainer", "build", "--force", "--fakeroot", "hand.sif", "hand.def"], work).seconds


def _median(seconds: Sequence[float]) -> float:
    return statistics.median(seconds)


if __name__ == "__main__":
    if sys.argv[1:] == ["--fast"]:
        print_fast()
    else:
        replace_section(run())
