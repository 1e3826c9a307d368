"""`ctk new` as a user types it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_a_recipe_from_a_script_can_be_read_and_changed(ctk: Ctk, directory: Path) -> None:
    made = json.loads(ctk("new", "other", "--from", "train.py", "--json").stdout)
    assert (made["schema"], made["base"], made["packages"]) == ("ctk.new/1", "pytorch-2.10-cuda12.8", ["timm"])
    ctk("add", "other", "einops", "timm>=1", "--no-lock")
    assert ctk("remove", "other", "einops", "--no-lock").stdout == "Removed: einops.\n"
    text = (directory / "defs/other.toml").read_text()
    assert 'packages = ["timm>=1"]' in text
    assert "other" in ctk("list").stdout


def test_a_script_is_run_as_it_was_named(ctk: Ctk, directory: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "sub/my train ü.py").write_text("import jax, flax\n")
    done = ctk("new", "other", "--from", "sub/my train ü.py", "--base", "pytorch-2.6", "--json")
    made = json.loads(done.stdout)
    assert (made["base"], made["packages"]) == ("pytorch-2.6", ["flax", "jax"])
    assert [finding["code"] for finding in made["findings"]] == ["second-framework"]
    assert 'command = ["python", "sub/my train ü.py"]' in (directory / "defs/other.toml").read_text()


def test_code_of_tensorflow_1_gets_a_base_with_it(ctk: Ctk, directory: Path) -> None:
    (directory / "old.py").write_text("import tensorflow as tf\n\nsession = tf.Session()\n")
    ctk("new", "old", "--from", "old.py")
    assert 'base = "tensorflow-1.15"' in (directory / "defs/old.toml").read_text()
    newer = ctk("new", "newer", "--from", "old.py", "--base", "tensorflow-2.15")
    assert "old.py:3: tensorflow.Session is part of TensorFlow 1" in newer.stdout
    assert "start from the base tensorflow-1.15" in newer.stdout


def test_the_machine_is_written_to_the_recipe(ctk: Ctk, directory: Path) -> None:
    done = ctk(
        "new", "for-gpus", "--from", "train.py", "--gpu", "V100, A100", "--gpu", "H100", "--driver", "535.104.05"
    )
    assert "pytorch-2.13-cuda12.6 was chosen" in done.stdout
    text = (directory / "defs/for-gpus.toml").read_text()
    assert 'gpu = ["V100", "A100", "H100"]' in text
    assert 'driver = "535.104.05"' in text


def test_recipe_for_a_gpu_beside_an_arm_processor_names_the_architecture(ctk: Ctk, directory: Path) -> None:
    done = ctk("new", "superchip", "--gpu", "GH200", "--base", "python-3.12")
    assert 'arch = ["aarch64"]' in (directory / "defs/superchip.toml").read_text()
    assert done.status == 0
