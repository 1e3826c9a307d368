"""Layers against the flat image: random trees, and the environment of a step."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.real.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.real.conftest import User

# As many as fit in ten seconds; `make soak` compares hundreds.
TREES = 6


def test_layered_trees_are_the_flat_ones(user: User, directory: Path) -> None:
    program = directory / "layer_trees.py"
    shutil.copy(CHECKOUT / "tests/soak/layer_trees.py", program)
    python = user.program.with_name("python")
    place = {"TMPDIR": str(directory)}
    done = user.run(python, program, "--seed", "1", "--count", str(TREES), cwd=directory, env=place)
    assert f"{TREES} of {TREES} trees are the same" in done.stdout
