"""The steps of a layered build: each script in one layer, and the same as in the definition."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.definitions.test_steps import ALL, BASE, FILE
from tests.pins.locks import SMALL
from toolkit.definitions.definition import define
from toolkit.definitions.layered import LayeredSteps, LayerName, LayerStep, imports_over_layers, layer_steps
from toolkit.definitions.places import STAGING
from toolkit.definitions.steps import Input, StepName, beginning, steps
from toolkit.recipes.model import Recipe


def by_name(*arguments: object) -> dict[str, LayerStep]:
    return {step.name.value: step for step in layer_steps(*arguments).layers}  # type: ignore[arg-type]


@pytest.mark.parametrize("lock", [None, SMALL])
def test_script_of_each_step_is_in_one_layer_and_in_the_definition(lock: object) -> None:
    recipe = ALL if lock else replace(ALL, packages=())
    made, layers = steps(recipe, lock), layer_steps(recipe, lock).layers  # type: ignore[arg-type]
    text = define(recipe, lock=lock).text  # type: ignore[arg-type]
    for step in made:
        body = f"    # Step: {step.name}\n{step.script}\n"
        again = bool(lock) and step.name is StepName.METADATA  # after the packages, and after `post`
        assert sum(layer.script.count(body) for layer in layers) == 1 + again
        assert body in text
    assert [copied for layer in layers for copied in layer.inputs] == [Input(FILE.source, f"{STAGING}/1/my data")]
    assert all(layer.script.startswith(beginning()) for layer in layers)


def test_layers_are_in_their_order_and_hold_their_steps() -> None:
    layers = by_name(ALL, SMALL)
    assert list(layers) == [name.value for name in LayerName]
    found = {name: [step.value for step in StepName if f"# Step: {step}\n" in layers[name].script] for name in layers}
    assert found == {
        "apt": ["apt"],
        "packages": ["python", "packages", "metadata"],
        "tail": ["files", "post", "metadata"],
    }
    assert "ctk_guard" not in layers["apt"].script
    assert [layer.title for layer in layers.values()] == ["Debian packages", "Python packages", "files and post script"]


def test_only_what_has_a_script_or_a_file_is_a_layer() -> None:
    empty = Recipe("empty", Path("empty.toml"), BASE)
    assert layer_steps(empty) == LayeredSteps(())
    files = by_name(replace(empty, files=(FILE,)))
    assert list(files) == ["tail"], "no layer for the symlink `python` alone"
    assert "# Step: python\n" in files["tail"].script
    assert list(by_name(empty, replace(SMALL, packages=()))) == ["tail"]


def test_packages_alone_start_one_container_for_all_steps() -> None:
    layers = by_name(replace(ALL, apt=(), files=(), post=""), SMALL)
    assert list(layers) == ["packages"]
    assert all(f"# Step: {name}\n" in layers["packages"].script for name in ("python", "packages", "metadata"))


@pytest.mark.parametrize("more", [{"files": (FILE,)}, {"post": "true"}, {"files": (FILE,), "post": "true"}])
def test_first_file_or_post_leaves_the_layer_of_packages_as_it_is(more: dict[str, object]) -> None:
    alone = replace(ALL, files=(), post="")
    (before, changed) = (by_name(recipe, SMALL) for recipe in (alone, replace(alone, **more)))  # type: ignore[arg-type]
    assert list(changed) == [*before, "tail"]
    assert {name: changed[name] for name in before} == before


def test_a_tail_runs_under_the_constraint_file_if_it_has_a_post_script() -> None:
    assert "ctk_guard_run constraint" in by_name(ALL, SMALL)["tail"].script
    assert "ctk_guard" not in by_name(replace(ALL, post=""), SMALL)["tail"].script


def test_changed_variable_import_or_check_repeats_no_script() -> None:
    changed = replace(ALL, environment=(("CTK_TEST", "2"),), import_skip=("six",), check=("true",))
    assert changed.environment != ALL.environment
    assert layer_steps(changed, SMALL).layers == layer_steps(ALL, SMALL).layers


def test_imports_are_those_of_the_lock() -> None:
    assert layer_steps(replace(ALL, packages=())).imports is None
    wanted = layer_steps(ALL, SMALL).imports
    assert wanted is not None
    script = imports_over_layers(SMALL, wanted)
    assert script.startswith(beginning())
    assert "ctk_guard_run imports" in script
    assert "export PIP_CONSTRAINT" not in script
    checking = layer_steps(replace(ALL, packages=(), check=("true",)), replace(SMALL, asked=(), packages=())).imports
    assert checking is not None
    assert checking.check == ("true",)
    skipping = layer_steps(replace(ALL, import_skip=("timm",)), SMALL).imports
    assert skipping is not None
    assert '"skip": [\n   "timm"\n  ]' in imports_over_layers(SMALL, skipping)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_scripts_of_layers_are_valid_shell(shell: str) -> None:
    made = layer_steps(ALL, SMALL)
    assert made.imports is not None
    for script in (*(layer.script for layer in made.layers), imports_over_layers(SMALL, made.imports)):
        done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
