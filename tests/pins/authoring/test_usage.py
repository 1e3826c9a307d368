"""Which parts of a module a script uses."""

from __future__ import annotations

import ast

from hypothesis import given

from tests.pins.authoring.test_purpose import CHAINS
from toolkit.pins.authoring.usage import bound_names, used_parts


def test_a_part_is_named_by_whatever_the_import_bound() -> None:
    tree = ast.parse(
        "import torch.nn as nn\nfrom tensorflow import data as d\nimport jax.numpy\nnn.A.x; d.B; jax.numpy.c"
    )
    bound = bound_names(tree, ["torch", "tensorflow", "jax"])
    assert {name for name, _ in used_parts(tree, bound)} == {"torch.nn.A.x", "tensorflow.data.B", "jax.numpy.c"}


@given(CHAINS)
def test_every_chain_that_begins_with_the_module_is_found_once(text: str) -> None:
    tree = ast.parse(f"import tensorflow as tf\n{text}")
    found = [name for name, _ in used_parts(tree, bound_names(tree, ["tensorflow"]))]
    assert len(found) == ("tf" in text)
    assert all(name.startswith("tensorflow") for name in found)
