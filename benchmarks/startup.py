"""The time to the help, a definition, a job script and the list of bases: ctk compared with its peers."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Times, environment_of, environment_of_ctk, interleaved
from benchmarks.section import Section, Table, Target
from toolkit import __version__
from toolkit.recipes.catalogue import Catalogue

if TYPE_CHECKING:
    from toolkit.recipes.model import Recipe

_RECIPE = "keras-bert"
_PEERS = {
    "hpccm": "hpccm==26.5.0",
    "neurodocker": "neurodocker==2.1.2",
    "spython": "spython==0.3.14",
    "cotainr": "cotainr==2025.7.1",
    "simple_slurm": "simple-slurm==0.3.6",
    "submitit": "submitit==1.5.4",
}
_WITH_HELP = ("hpccm", "neurodocker", "spython", "cotainr")

_WORDS = """\
Wall time of whole commands, the interpreter's own start included. Each program is in a virtual environment of its own,
made with the same Python; output goes to a pipe. All commands of a table run in turn, 31 rounds after one that warms
up. *ctk ÷ this* below 1 means that ctk is faster.

The definition is the same for all: the base, the Debian package and the Python packages of the recipe `keras-bert`.
For hpccm these are a recipe, for neurodocker options, for spython a Dockerfile that it converts; cotainr renders none
without building. What ctk prints is more: the exact versions of the recipe's lock, which the warm-up makes, and the
guard that installs them. The job script asks for one GPU and four hours; simple_slurm and submitit have no help of
their own and are used as libraries, so that a few lines of Python stand for what their users write. No peer lists
bases."""

_HPCCM_RECIPE = """\
Stage0 += baseimage(image={image!r})
Stage0 += environment(variables={{'PYTHONNOUSERSITE': '1', 'LC_ALL': 'C.UTF-8'}})
Stage0 += apt_get(ospackages={apt!r})
Stage0 += pip(pip='pip3', packages={packages!r}, ospackages=[])
Stage0 += label(metadata={{'recipe': 'keras-bert'}})
"""
_DOCKERFILE = """\
FROM {image}
ENV PYTHONNOUSERSITE=1 LC_ALL=C.UTF-8
RUN apt-get update && apt-get install -y --no-install-recommends {apt}
RUN pip3 install {packages}
LABEL recipe keras-bert
"""
_SIMPLE_SLURM = """\
from simple_slurm import Slurm
slurm = Slurm(job_name="train", gpus=1, time="4:00:00", output="%x-%j.log")
slurm.add_cmd("apptainer exec --nv keras-bert.sif python train.py")
print(slurm.script())
"""
_SUBMITIT = """\
from submitit.slurm.slurm import _make_sbatch_string
command = "apptainer exec --nv keras-bert.sif python train.py"
print(_make_sbatch_string(command, "logs", "train", gpus_per_node=1, time=240))
"""


def run() -> Section:
    """Measure, and compare the figures with hpccm's and neurodocker's."""
    ctk = environment_of_ctk()
    peers = {name: environment_of(requirement) for name, requirement in _PEERS.items()}
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        helps = interleaved(_help_commands(ctk, peers))
        definitions = interleaved(_definition_commands(ctk, peers, directory), directory=directory)
        scripts = interleaved(_script_commands(ctk, peers, directory), directory=directory)
        bases = interleaved(_bases_commands(ctk), directory=directory)
    to_hpccm = helps["ctk --help"].median / helps["hpccm --help"].median
    slowest = max(timing.median for timing in bases.values())
    to_neurodocker = definitions[f"ctk def {_RECIPE}"].median / definitions["neurodocker generate singularity …"].median
    return Section(
        "Start-up",
        _WORDS,
        tables=(
            _table("The help", helps),
            _table("A Singularity definition", definitions),
            _table("A job script", scripts),
            _table("The bases to start from", bases),
        ),
        targets=(
            Target(f"`ctk --help` is no slower than hpccm's: {to_hpccm:.2f} of its time", to_hpccm <= 1),
            Target(
                f"`ctk def` takes less than 0.8 of neurodocker's time: {to_neurodocker:.2f} of it", to_neurodocker < 0.8
            ),
            Target(f"`ctk bases` and `ctk bases --gpu V100` answer in under 0.2 s: {slowest:.2f} s", slowest < 0.2),
        ),
        versions=(f"ctk {__version__}", *(requirement.replace("==", " ") for requirement in _PEERS.values())),
    )


def _help_commands(ctk: Path, peers: dict[str, Path]) -> dict[str, list[str | Path]]:
    return {
        "ctk --help": [ctk / "ctk", "--help"],
        **{f"{name} --help": [peers[name] / name, "--help"] for name in _WITH_HELP},
        "python -c pass": [ctk / "python", "-c", "pass"],
    }


def _definition_commands(ctk: Path, peers: dict[str, Path], directory: Path) -> dict[str, list[str | Path]]:
    recipe = Catalogue.here().recipe(_RECIPE)
    hpccm_recipe, dockerfile = directory / "recipe.py", directory / "Dockerfile"
    hpccm_recipe.write_text(
        _HPCCM_RECIPE.format(image=recipe.base.reference, apt=list(recipe.apt), packages=list(recipe.packages))
    )
    dockerfile.write_text(
        _DOCKERFILE.format(image=recipe.base.reference, apt=" ".join(recipe.apt), packages=shlex.join(recipe.packages))
    )
    return {
        f"ctk def {_RECIPE}": [ctk / "ctk", "def", _RECIPE],
        "hpccm --format singularity …": [peers["hpccm"] / "hpccm", "--recipe", hpccm_recipe, "--format", "singularity"],
        "neurodocker generate singularity …": _neurodocker(peers["neurodocker"], recipe),
        "spython recipe Dockerfile": [peers["spython"] / "spython", "recipe", dockerfile],
    }


def _neurodocker(directory: Path, recipe: Recipe) -> list[str | Path]:
    return [
        directory / "neurodocker",
        *("generate", "singularity", "--pkg-manager", "apt", "--base-image", recipe.base.reference),
        *("--env", "PYTHONNOUSERSITE=1", "LC_ALL=C.UTF-8", "--install", *recipe.apt),
        *("--run", f"pip3 install {shlex.join(recipe.packages)}", "--label", f"recipe={recipe.name}"),
    ]


def _script_commands(ctk: Path, peers: dict[str, Path], directory: Path) -> dict[str, list[str | Path]]:
    image = directory / "keras-bert.sif"
    image.write_bytes(b"\0" * 32 + b"SIF_MAGIC\0" + b"\0" * 100)  # enough for a command that only names the image
    options = ["-J", "train", "--image", str(image), "--gpus", "1", "--time", "4:00:00"]
    return {
        "ctk sbatch --dry-run …": [ctk / "ctk", "sbatch", "--dry-run", *options, "--", "python", "train.py"],
        "simple_slurm, Slurm.script()": [peers["simple_slurm"] / "python", "-c", _SIMPLE_SLURM],
        "submitit, _make_sbatch_string()": [peers["submitit"] / "python", "-c", _SUBMITIT],
    }


def _bases_commands(ctk: Path) -> dict[str, list[str | Path]]:
    return {
        "ctk bases": [ctk / "ctk", "bases"],
        "ctk bases --gpu V100": [ctk / "ctk", "bases", "--gpu", "V100"],
        "python -c pass": [ctk / "python", "-c", "pass"],
    }


def _table(caption: str, times: dict[str, Times]) -> Table:
    ctk = next(iter(times.values())).median
    return Table(
        caption,
        ("command", "median, ms", "fastest, ms", "ctk ÷ this"),
        tuple(
            (
                f"`{name}`",
                f"{1000 * timing.median:.0f}",
                f"{1000 * timing.fastest:.0f}",
                f"{ctk / timing.median:.2f}",
            )
            for name, timing in times.items()
        ),
    )
