"""What plain pip does to a base's GPU framework, and what ctk does: the most popular packages, one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.real_bases import SHAPES, real_base
from benchmarks.section import Section, Table, Target
from toolkit.inventory.knowledge.frameworks import knowledge, matches
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import open_uv
from toolkit.pins.lock.protected import protect
from toolkit.pins.locking import make_lock
from toolkit.pins.resolver.question import write_stub
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed, CtkError
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from toolkit.inventory.contents.model import Distribution
    from toolkit.pins.bases.target import PythonTarget as Python
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.protected import ProtectedSet

_TIMEOUT_SECONDS = 240.0
_POPULAR = read_toml(Path(__file__).with_name("popular.toml")).content
PACKAGES: dict[str, list[str]] = {shape: names.split() for shape, names in _POPULAR.items()}

_WORDS = """\
Each base is a set of real distributions with their real metadata, as the index had them on one day. For each package
alone: what `pip install PACKAGE` would do there (pip {pip}, `--dry-run`, without any guard), and what `ctk lock` does.
*Framework changed by pip*: pip would change, duplicate or overwrite a distribution of the protected set, or change
numpy's major version, for which the framework was compiled, all with exit status 0. *Framework changed by ctk*: the
lock would do one of these. *Refused*: by ctk, with the reason; also if the resolution took longer than
{patience:.0f} s."""


@dataclass(frozen=True)
class Outcome:
    """One package: what pip would change in the protected set, and what ctk does ("locked" or why not)."""

    package: str
    pip: tuple[str, ...]
    pip_refused: bool
    ctk: str
    touched: tuple[str, ...]


def run(shapes: tuple[str, ...] = ("tensorflow", "torch", "nvidia", "jax")) -> Section:
    """All packages over all bases; takes a quarter of an hour on two cores, most of it pip's."""
    with tempfile.TemporaryDirectory(prefix="ctk-bench-pins-") as name:
        uv = replace(open_uv(Path(name)), patience=_TIMEOUT_SECONDS)
        outcomes = {shape: over(uv, shape, Path(name)) for shape in shapes}
        warm, by_pip = _warm_lock(uv, Path(name))
    rows = [_row(SHAPES[shape].title, found) for shape, found in outcomes.items()]
    replaced = [
        (SHAPES[shape].title, outcome.package, ", ".join(outcome.pip), outcome.ctk)
        for shape, found in outcomes.items()
        for outcome in found
        if outcome.pip
    ]
    touched = sum(bool(outcome.touched) for found in outcomes.values() for outcome in found)
    counts = ("base", "packages", "framework changed by pip", "framework changed by ctk", "locked", "refused")
    return Section(
        "GPU-safe pins",
        _WORDS.format(pip=_pip_version(), patience=_TIMEOUT_SECONDS),
        (
            Table("Packages that change the framework", counts, tuple(rows)),
            Table("What pip would change", ("base", "package", "changes", "ctk"), tuple(replaced)),
            Table(
                "A lock of keras-bert, warm", ("program", "seconds"), (("ctk", f"{warm:.1f}"), ("pip", f"{by_pip:.1f}"))
            ),
        ),
        (
            Target(f"ctk changes nothing that is protected ({touched} packages did)", touched == 0),
            Target(f"a warm lock of keras-bert takes under 3 s ({warm:.1f} s)", warm < 3),
        ),
    )


def over(uv: Uv, shape: str, directory: Path) -> list[Outcome]:
    """Every package of a list over one base."""
    target = real_base(uv, SHAPES[shape], directory / "bases")
    protected = protect(target, knowledge())
    environment = _environment(target, directory / f"environment-{shape}")

    def one(package: str) -> Outcome:
        changed, refused = by_pip(environment, target, protected, package)
        outcome = Outcome(package, changed, refused, *_by_ctk(uv, target, protected, package))
        print(f"bench: {shape}: {outcome}", file=sys.stderr, flush=True)
        return outcome

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, PACKAGES[shape]))


def _row(title: str, found: list[Outcome]) -> tuple[str, ...]:
    locked = sum(outcome.ctk == "locked" for outcome in found)
    counts = (
        len(found),
        sum(bool(outcome.pip) for outcome in found),
        sum(bool(outcome.touched) for outcome in found),
        locked,
        len(found) - locked,
    )
    return (title, *map(str, counts))


def _environment(target: Python, directory: Path) -> Path:
    """A virtual environment in which pip finds the base's distributions, although only their metadata exists."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    (site,) = directory.glob("lib/python3*/site-packages")
    write_stub(directory / "stub", target.installed.values())
    for information in (directory / "stub").iterdir():
        information.rename(site / information.name)
    return directory


def by_pip(environment: Path, target: Python, protected: ProtectedSet, package: str) -> tuple[tuple[str, ...], bool]:
    """What pip would change in the protected set in a virtual environment, and whether it finds no solution."""
    report = environment / f"{package}.json"
    try:
        done = _pip_dry_run(environment, "--report", str(report), package)
    except subprocess.TimeoutExpired:
        return (), True
    if done.returncode != 0 or not report.is_file():
        return (), True
    chosen = {
        item["metadata"]["name"].lower().replace("_", "-").replace(".", "-"): item["metadata"]["version"]
        for item in json.loads(report.read_text())["install"]
    }
    return tuple(changes(target, protected, chosen)), False


def _pip_dry_run(environment: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """What a container's pip would do: without the settings that this machine has for its own pip."""
    python = environment / "bin/python"
    argv = [sys.executable, "-m", "pip", "--python", str(python), "install", "--dry-run", "-q", *arguments]
    settings = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    return subprocess.run(argv, capture_output=True, env=settings, timeout=_TIMEOUT_SECONDS, check=False)


def changes(target: Python, protected: ProtectedSet, chosen: dict[str, str]) -> list[str]:
    """What of the protected set `chosen` (versions by name) would replace, double or overlay."""
    found = []
    for name, version in sorted(chosen.items()):
        there: Distribution | None = target.installed.get(name)
        pin = protected.pin(name)
        major = there is not None and any(bound.name == name for bound in protected.bounds)
        if pin is not None:
            found.append(f"{name} {pin.version} → {version}")
        elif major and there is not None and there.version.split(".")[0] != version.split(".")[0]:
            found.append(f"{name} {there.version} → {version}")
        elif there is None and any(matches(name, (ban.name,)) for ban in protected.forbidden):
            found.append(f"{name} {version} beside it")
    return found


def _by_ctk(uv: Uv, target: Python, protected: ProtectedSet, package: str) -> tuple[str, tuple[str, ...]]:
    base = Base("base", "localimage", "/base.sif")
    recipe = Recipe("bench", Path("bench.toml"), base, packages=(package,))
    try:
        lock = make_lock(uv, recipe, BaseFacts(base, target, "sha256:0"))
    except CheckFailed as refusal:
        return f"refused: {refusal.message.splitlines()[-1]}", ()
    except CtkError as error:
        return f"refused: {error.message}", ()
    return "locked", tuple(changes(target, protected, {package.name: package.version for package in lock.packages}))


def _warm_lock(uv: Uv, directory: Path) -> tuple[float, float]:
    """Seconds for the whole recipe, each once more after a first time: by ctk, and pip's own dry run."""
    packages = ("keras-bert", "sentencepiece", "scikit-learn", "transformers", "matplotlib", "pydot")
    target = real_base(uv, SHAPES["tensorflow"], directory / "bases")
    base = Base("base", "localimage", "/base.sif")
    recipe = Recipe("bench", Path("bench.toml"), base, packages=packages)
    facts = BaseFacts(base, target, "sha256:0")
    make_lock(uv, recipe, facts)
    begun = time.monotonic()
    make_lock(uv, recipe, facts)
    ours = time.monotonic() - begun
    environment = _environment(target, directory / "environment-warm")
    for _ in range(2):
        begun = time.monotonic()
        _pip_dry_run(environment, *packages).check_returncode()
    return ours, time.monotonic() - begun


def _pip_version() -> str:
    done = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]
