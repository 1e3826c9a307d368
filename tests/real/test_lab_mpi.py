"""MPI from an image, over the nodes of a practice cluster: Slurm starts the ranks (PMIx), or mpirun does."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.real.conftest import CA_BUNDLE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import PracticeCluster, User

_DEFINITION = """
Bootstrap: localimage
From: {base}

%post
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends openmpi-bin libpmix2 python3-mpi4py
"""
_PROGRAM = """
import os, sys
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
sys.stdout.write(f"rank {world.rank} of {world.size} sum {total} on {os.environ['SLURMD_NODENAME']}\\n")
"""


@pytest.fixture(scope="module")
def mpi_image(ground: Path, builder: User, base_image: Path) -> Path:
    """Debian's Open MPI and mpi4py: the same release as the host's."""
    (ground / "mpi.def").write_text(_DEFINITION.format(base=base_image))
    image = ground / "mpi.sif"
    builder.run("apptainer", "build", "--fakeroot", "--bind", CA_BUNDLE, image, ground / "mpi.def", cwd=ground)
    image.chmod(0o644)
    (ground / "mpi.py").write_text(_PROGRAM)
    return image


@pytest.mark.parametrize(
    "launcher",
    [
        ("srun", "--mpi=pmix", "-N2", "-n4", "--ntasks-per-node=2"),
        ("salloc", "--quiet", "-N2", "-n4", "--ntasks-per-node=2", "mpirun"),
    ],
    ids=["srun", "mpirun"],
)
def test_four_ranks_on_two_nodes_are_one_world(
    lab: PracticeCluster, ground: Path, mpi_image: Path, launcher: tuple[str, ...]
) -> None:
    program = ("apptainer", "exec", "--bind", str(ground), str(mpi_image), "python3", str(ground / "mpi.py"))
    for _ in range(3):
        try:
            printed = lab.user.run(*launcher, *program, cwd=ground, env=lab.environment, timeout=60).stdout
        except subprocess.TimeoutExpired:
            lab.user.run("scancel", "--me", cwd=ground, env=lab.environment)
            raise
        # mpirun may print two lines that come at once in one.
        said = sorted(re.findall(r"rank (\d) of (\d) sum (\d+) on (n\d)", printed))
        assert [words[:3] for words in said] == [(str(rank), "4", "6") for rank in range(4)], printed
        assert len({node for *_, node in said}) == 2, printed
