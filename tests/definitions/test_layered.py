"""The steps of a layered build: each script in one layer, and the same as in the definition."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.definitions.test_steps import ALL, BASE, FILE
from tests.pins.locks import SMALL
from toolkit.definitions.definition import define
from toolkit.definitions.layered import LayerName, LayerStep, layer_steps
from toolkit.definitions.steps import STAGING, Input, StepName, beginning, steps
from toolkit.recipes.model import Recipe


def by_name(*arguments: object) -> dict[str, LayerStep]:
    return {step.name.value: step for step in layer_steps(*arguments)}  # type: ignore[arg-type]


@pytest.mark.parametrize("lock", [None, SMALL])
def test_script_of_each_step_is_in_one_layer_and_in_the_definition(lock: object) -> None:
    recipe = ALL if lock else replace(ALL, packages=())
    made, layers = steps(recipe, lock), layer_steps(recipe, lock)  # type: ignore[arg-type]
    text = define(recipe, lock=lock).text  # type: ignore[arg-type]
    for step in made:
        body = f"    # Step: {step.name}\n{step.script}\n"
        assert [layer.script.count(body) for layer in layers].count(1) == 1
        assert sum(layer.script.count(body) for layer in layers) == 1
        assert body in text
    assert [copied for layer in layers for copied in layer.inputs] == [Input(FILE.source, f"{STAGING}/1/my data")]
    assert all(layer.script.startswith(beginning()) for layer in layers)


def test_layers_are_in_their_order_and_hold_their_steps() -> None:
    layers = by_name(ALL, SMALL)
    assert list(layers) == [name.value for name in LayerName]
    found = {name: [step.value for step in StepName if f"# Step: {step}\n" in layers[name].script] for name in layers}
    assert found == {"apt": ["apt"], "packages": ["python", "packages"], "tail": ["files", "post", "metadata"]}
    assert "ctk_guard" not in layers["apt"].script


def test_only_the_tail_is_always_there() -> None:
    empty = Recipe("empty", Path("empty.toml"), BASE)
    assert layer_steps(empty) == (LayerStep(LayerName.TAIL, ""),)
    files = by_name(replace(empty, files=(FILE,)))
    assert list(files) == ["tail"], "no layer for the symlink `python` alone"
    assert "# Step: python\n" in files["tail"].script
    nothing_added = by_name(empty, replace(SMALL, packages=()))
    assert list(nothing_added) == ["tail"]
    assert "ctk_guard_run imports" in nothing_added["tail"].script


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_scripts_of_layers_are_valid_shell(shell: str) -> None:
    for layer in layer_steps(ALL, SMALL):
        done = subprocess.run([shell, "-n"], input=layer.script, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), layer.name
