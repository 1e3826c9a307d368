"""What code uses its frameworks for: the one that computes chooses the base, in a version that has the parts."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st

from tests.pins.authoring.few_bases import BASES
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.proposal import Proposal, propose_from_list
from toolkit.pins.authoring.reading import Bases, propose
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.recipes.model import Base

TF1 = replace(BASES["tensorflow-2.1"], name="tensorflow-1.15", framework_version="1.15.5")


def proposed(directory: Path, code: str, bases: dict[str, Base] | None = None, said: str | None = None) -> Proposal:
    script = directory / "train.py"
    script.write_text(textwrap.dedent(code))

    def no_index() -> None:
        raise AssertionError

    return propose(script, Bases(bases or BASES, said), no_index)  # type: ignore[arg-type]


# The input pipelines of flax/examples/mnist and imagenet, a DataLoader for JAX, a reader of TFRecords for torch.
@pytest.mark.parametrize(
    ("code", "base", "packages"),
    [
        (
            """
            import jax
            import jax.numpy as jnp
            import optax
            from flax import linen as nn
            import tensorflow as tf
            import tensorflow_datasets as tfds
            tf.config.experimental.set_visible_devices([], "GPU")
            data = tfds.load("mnist").map(lambda one: tf.cast(one["image"], tf.float32)).prefetch(tf.data.AUTOTUNE)
            """,
            "jax-24.10",
            {"flax", "optax", "tensorflow-cpu", "tensorflow-datasets"},
        ),
        ("import haiku as hk\nimport tensorflow_datasets as tfds", "jax-24.10", {"dm-haiku", "tensorflow-datasets"}),
        (
            "import jax\nimport torch\nloader = torch.utils.data.DataLoader([])\nfrom torch.utils.data import Dataset",
            "jax-24.10",
            set(),
        ),
        (
            "import torch\nimport tensorflow as tf\nrows = tf.data.TFRecordDataset([])\nclass A(torch.nn.Module): pass",
            "pytorch-2.6",
            {"tensorflow-cpu"},
        ),
        ("import tensorflow as tf\nimport jax\ntf.keras.Model()", "tensorflow-2.15", set()),
        ("import tensorflow as tf\nrows = tf.data.Dataset.range(3)", "tensorflow-2.15", set()),
    ],
)
def test_the_framework_that_computes_chooses_the_base(tmp_path: Path, code: str, base: str, packages: set[str]) -> None:
    proposal = proposed(tmp_path, code)
    assert (proposal.base, set(proposal.packages)) == (base, packages)


def test_framework_for_data_is_installed_as_cpu_variant(tmp_path: Path) -> None:
    code = "import jax\nimport tensorflow as tf\nx = jax.grad(lambda y: y)\nrows = tf.data.Dataset.range(3)"
    proposal = proposed(tmp_path, code)
    (finding,) = proposal.findings
    assert (finding.code, finding.severity) == ("framework-for-data", Severity.INFO)
    assert finding.message == (
        "the code uses TensorFlow only to read data and computes with JAX: tensorflow-cpu, which uses no "
        "GPU, is installed as well"
    )


@pytest.mark.parametrize(
    ("lines", "base"),
    [
        ("tensorflow jax flax optax", "jax-24.10"),
        ("tensorflow-cpu jax", "jax-24.10"),
        ("tensorflow-datasets optax", "jax-24.10"),
        ("tensorflow-datasets", "tensorflow-2.15"),
        ("tensorflow jax", "tensorflow-2.15"),
    ],
)
def test_companions_of_list_determine_computing_framework(lines: str, base: str) -> None:
    assert propose_from_list(lines.split(), names(), knowledge(), BASES).base == base


def test_cell_uses_imports_of_earlier_cells(tmp_path: Path) -> None:
    cells = ["import jax, tensorflow as tf", "x = jax.jit(len)", "rows = tf.data.Dataset.range(3)"]
    notebook = tmp_path / "x.ipynb"
    notebook.write_text(json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}))
    assert propose(notebook, Bases(BASES), lambda: None).base == "jax-24.10"  # type: ignore[arg-type, return-value]


OLD = [
    "import tensorflow as tf\nx = tf.placeholder(tf.float32)",
    "import tensorflow as tf\nwith tf.Session() as session: pass",
    "import tensorflow.contrib.slim as slim",
    "from tensorflow.contrib import slim",
    "from tensorflow.examples.tutorials.mnist import input_data",
    "from tensorflow import placeholder",
]


@pytest.mark.parametrize("code", OLD)
def test_code_of_tensorflow_1_gets_a_base_that_has_it_or_none(tmp_path: Path, code: str) -> None:
    assert proposed(tmp_path, code, {**BASES, TF1.name: TF1}).base == TF1.name
    refused = proposed(tmp_path, code)
    assert refused.base is None
    (error,) = [one for one in refused.findings if one.severity is Severity.ERROR]
    assert error.code == "old-framework-code"
    assert "is part of TensorFlow 1" in error.message
    taken = proposed(tmp_path, code, said="tensorflow-2.15")
    assert taken.base == "tensorflow-2.15"
    assert [one.severity for one in taken.findings if one.code == "old-framework-code"] == [Severity.WARNING]


@pytest.mark.parametrize(
    "code",
    [
        "import tensorflow as tf\ntf.keras.Model()",
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\ntf.placeholder(tf.float32)",
        "from tensorflow.compat import v1 as tf\ntf.Session()",
        "import tensorflow as tf\nif not hasattr(tf, 'Session'): tf = tf.compat.v1\ntf.Session()",
        "import requests\nimport tensorflow\nrequests.Session()",
    ],
)
def test_code_for_tensorflow_2_is_not_old(tmp_path: Path, code: str) -> None:
    proposal = proposed(tmp_path, code)
    assert proposal.base == "tensorflow-2.15"
    assert not [one for one in proposal.findings if one.code == "old-framework-code"]


CHAINS = st.recursive(
    st.sampled_from(["tf", "x"]),
    lambda inner: inner.map(lambda text: f"{text}.a") | inner.map(lambda text: f"f({text}).b"),
)
