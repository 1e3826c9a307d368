"""The guard in real builds over bases with a real TensorFlow, with Keras 2 and with Keras 3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.real.frameworks import ATTACKS, SITE, FrameworkBase, attack, build, digest_of, framework_base

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User


@pytest.fixture(params=["2.15.1", "2.18.1"])
def tensorflow_base(
    request: pytest.FixtureRequest, builder: User, scratch: Path, base_image: Path
) -> Iterator[tuple[str, FrameworkBase]]:
    """Debian with the last TensorFlow of Keras 2, and with one of Keras 3."""
    required = f"tensorflow=={request.param}"
    base = framework_base(builder, scratch, base_image, "tensorflow", required)
    yield request.param, base
    base.image.unlink()


def test_what_is_built_on_keras_comes_and_tensorflow_stays(
    builder: User, work: Path, tensorflow_base: tuple[str, FrameworkBase]
) -> None:
    version, base = tensorflow_base
    with_keras_2 = version == "2.15.1"
    names = ["tf-keras", "tensorflow-text", "keras-bert" if with_keras_2 else "keras-hub"]
    if with_keras_2:
        refused = build(builder, work, base, 'packages = ["keras-hub"]\n', 1).stderr
        assert "keras-hub" in refused
        assert "keras.ops, which came with Keras 3" in refused
        for post in list(ATTACKS)[:3]:
            attack(builder, work, base, post, NAME="tensorflow", VERSION=version, OTHER="2.14.1")
    build(builder, work, base, f'packages = {json.dumps(names)}\npost = "pip install --upgrade tensorflow"\n', 0)
    assert digest_of(work / "out" / SITE / "tensorflow") == base.digest
    modules = ", ".join(name.replace("-", "_") for name in names)
    code = f"import tensorflow, {modules}; print(tensorflow.__version__)"
    shown = builder.ctk("run", "out/", "--", "python3", "-c", code, cwd=work, timeout=300)
    assert shown.stdout.strip().splitlines()[-1] == version
