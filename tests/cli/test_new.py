"""`ctk new` as a user types it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

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


@pytest.mark.parametrize(
    ("code", "options", "base", "packages"),
    [
        ("jax, flax", "", "python-3.12", "jax[cuda12] nvidia-cudnn-cu12<9.11 flax"),
        ("jax", "--gpu V100 --driver 535.104.05", "python-3.12", "jax[cuda12] nvidia-cudnn-cu12<9.11"),
        ("jax", "--gpu H100 --driver 580.65.06", "python-3.12", "jax[cuda13]"),
        ("jax", "--gpu GH200 --driver 570.26", "python-3.12", "jax[cuda12] nvidia-cudnn-cu12<9.11"),
        ("cupy", "--gpu V100", "python-3.12", "cupy-cuda12x[ctk]"),
        ("cupy", "--arch aarch64 --driver 590.44.01", "python-3.12", "cupy-cuda13x[ctk]"),
        ("chainer, cupy", "--gpu T4", "tensorflow-2.1", "chainer==7.8.1 cupy-cuda101==7.8.0"),
    ],
)
def test_framework_without_an_image_comes_from_wheels(
    ctk: Ctk, directory: Path, code: str, options: str, base: str, packages: str
) -> None:
    (directory / "code.py").write_text(f"import {code}\n")
    made = json.loads(ctk("new", "wheels", "--from", "code.py", *options.split(), "--json").stdout)
    assert (made["base"], made["packages"]) == (base, packages.split())
    recipe = (directory / "defs/wheels.toml").read_text()
    assert ('skip = ["nvidia-cudnn-cu12"]' in recipe) == ("nvidia-cudnn-cu12" in packages)
    framework = code.partition(",")[0]
    named = json.loads(ctk("new", "named", "--framework", framework, *options.split(), "--json").stdout)
    assert (named["base"], named["packages"]) == (base, [one for one in packages.split() if one != "flax"])
    assert [finding["code"] for finding in named["findings"]] == ["base-chosen"]


@pytest.mark.parametrize(
    ("code", "options", "words"),
    [
        ("jax", "--driver 470.57.02", "CUDA 12 needs NVIDIA driver 525.60.13 or newer"),
        ("cupy", "--gpu K80", "no K80"),
        ("chainer", "--gpu A100", "no base for chainer serves this machine"),
        ("torch", "--gpu V100 --driver 590.44.01", "580 is the last branch for Volta"),
    ],
)
def test_framework_that_no_base_serves_is_refused_and_not_installed_into_another(
    ctk: Ctk, directory: Path, code: str, options: str, words: str
) -> None:
    (directory / "code.py").write_text(f"import {code}\n")
    done = ctk("new", "wheels", "--from", "code.py", *options.split(), status=1)
    assert words in done.stderr
    assert "no-base-fits" in done.stderr
    assert not (directory / "defs/wheels.toml").exists()


def test_framework_of_wheels_in_a_version_is_that_version(ctk: Ctk) -> None:
    made = json.loads(ctk("new", "named", "--framework", "jax==0.6.2", "--json").stdout)
    assert made["packages"] == ["jax[cuda12]==0.6.2", "nvidia-cudnn-cu12<9.11"]
    refused = ctk("new", "other", "--framework", "chainer", "--gpu", "A100", status=1).stderr
    assert "it has no code for A100" in refused
    listed = [base["name"] for base in json.loads(ctk("bases", "--framework", "jax", "--json").stdout)["bases"]]
    assert listed[:2] == [f"python-3.12 with jax[cuda{one}" for one in ("12], nvidia-cudnn-cu12<9.11", "13]")]


@pytest.mark.parametrize("command", [("new", "x"), ("bases",), ("bases", "--why")])
def test_each_set_of_wheels_is_named_with_all_that_excludes_it(ctk: Ctk, command: tuple[str, ...]) -> None:
    done = ctk(*command, *["--framework", "cupy", "--gpu", "GB10", "--driver", "570"], status=1)
    for cuda, driver in (("12", "575.51.03"), ("13", "580")):
        wheels = f"python-3.12 with cupy-cuda{cuda}x[ctk]: "
        assert f"needs NVIDIA driver {driver} or newer" in done.stderr.partition(wheels)[2].partition(". ")[0]
    assert "ctk new" not in done.stderr
    assert "--why" not in done.stderr
    assert ("cupy-cuda13x[ctk]" in done.stdout) == ("--why" in command)


def test_recipe_for_a_gpu_beside_an_arm_processor_names_the_architecture(ctk: Ctk, directory: Path) -> None:
    for words in (("--gpu", "GH200", "--arch", "x86_64"), ("--gpu", "GH200,V100", "--arch", "amd64")):
        assert "GH200 exists only beside an Arm processor" in ctk("new", "superchip", *words, status=2).stderr
    for words in (
        ("--gpu", "GH200", "--gpu", "V100"),
        ("--arch", "x86_64", "--arch", "arm64"),
        ("--arch", "amd64,arm64"),
    ):
        ctk("new", "both", "--framework", "jax", *words, "--force")
        assert 'arch = ["x86_64", "aarch64"]' in (directory / "defs/both.toml").read_text()
    refused = ctk("new", "one", "--framework", "chainer", "--gpu", "GH200", "--gpu", "V100", status=1).stderr
    assert "no base serves this" in refused
    done = ctk("new", "superchip", "--gpu", "GH200", "--base", "python-3.12")
    assert 'arch = ["aarch64"]' in (directory / "defs/superchip.toml").read_text()
    assert done.status == 0
