"""Extras that do not exist, in whatever spelling, of what the index has and of what the base has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.pins.python_targets import TORCH, distribution, target
from toolkit.pins.resolver.extras import require_extras
from toolkit.pins.resolver.question import Answer
from toolkit.support.errors import CheckFailed

NOTHING = Answer({}, {})
NO_CUDA_13 = replace(NOTHING, installed={"jax": "0.6.2"}, missing_extras=(("jax", "0.6.2", "cuda-13"),))
JAX = target(distribution("jax", "0.6.2", 'jax-cuda12-plugin; extra == "cuda12"', extras=("cuda12",)))


@pytest.mark.parametrize("line", ["jax[cuda-13]==0.6.2", "jax[CUDA_13]", "Jax[k8s,cuda.13]"])
def test_the_resolver_says_which_the_release_lacks(line: str) -> None:
    with pytest.raises(CheckFailed, match=r"jax 0.6.2 has no extra \[cuda-13\]"):
        require_extras([line, "jax"], TORCH, NO_CUDA_13)


def test_one_that_nobody_asked_for_is_not_missed() -> None:
    require_extras(["jax[cuda12]", "timm[all]"], TORCH, NO_CUDA_13)


@pytest.mark.parametrize("line", ["jax[cuda13]", "jax[cuda12,CUDA13]==0.6.2"])
def test_the_base_s_own_metadata_says_it_of_what_stays(line: str) -> None:
    with pytest.raises(CheckFailed, match=r"jax 0.6.2 has no extra \[cuda13\]"):
        require_extras([line], JAX, NOTHING)
    require_extras(["jax[Cuda12]", "jax[cuda13]; python_version < '3'"], JAX, NOTHING)
    require_extras(["jax[cuda13]"], target(distribution("jax", "0.6.2")), NOTHING)  # without metadata: who knows
