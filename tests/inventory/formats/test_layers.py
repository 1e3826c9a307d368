"""The names of an image's layers: those of its overlay partitions, strictly, and those that ctk recorded."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.making import Part, fill, overlay, system, write_sif
from toolkit.inventory.formats.layers import NONE, is_layer_name, layer_names, layers_of
from toolkit.inventory.formats.sif import read_sif
from toolkit.jobs.gate import gate_lines
from toolkit.support.errors import WrongInput

ONE, TWO = "ctk-layer-" + "0" * 32, "ctk-layer-" + "0123456789abcdef" * 2
NEAR = (
    f"{ONE}0",
    ONE[:-1],
    ONE.upper(),
    f" {ONE}",
    f"{ONE}\n",
    f"x{ONE}",
    f"{ONE}/..",
    "ctk-layer-",
    "*",
    "$(id)",
    "--",
)
NAMES = st.one_of(
    st.from_regex(r"ctk-layer-[0-9a-f]{32}", fullmatch=True),
    st.sampled_from(NEAR),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40),
)


def layer(name: str) -> Part:
    return replace(overlay(b"hsqs"), name=name)


def record(layers: object) -> Part:
    return Part(0x4006, json.dumps({"schema": "ctk.image/2", "layers": layers}).encode(), "ctk.json")


def test_names_are_those_of_the_overlays_of_ctk_in_order(tmp_path: Path) -> None:
    parts = [system(b"hsqs"), layer(TWO), layer("mine"), Part(0x4007, b"", ONE), layer(ONE)]
    image = write_sif(tmp_path / "x.sif", parts)
    assert layer_names(image) == layer_names(read_sif(image)) == layers_of(image).names == (TWO, ONE)
    assert layers_of(image).uuid == image.read_bytes()[48:64].hex()


@pytest.mark.parametrize("name", NEAR)
def test_other_names_are_no_layers_of_ctk(name: str) -> None:
    assert is_layer_name(ONE)
    assert not is_layer_name(name)


def test_images_without_layers(tmp_path: Path) -> None:
    flat = write_sif(tmp_path / "x.sif", [system(b"hsqs"), record([])])
    assert layers_of(flat).names == ()
    assert layers_of(fill(tmp_path / "sandbox", {".singularity.d/": ""})) == NONE
    assert layers_of(tmp_path / "none.sif") == NONE


def test_layer_that_the_file_lost_is_an_error(tmp_path: Path) -> None:
    image = write_sif(tmp_path / "x.sif", [system(b"hsqs"), layer(ONE), record([ONE, TWO])])
    with pytest.raises(WrongInput, match=f"built with the layer {TWO}, and the file no longer contains it") as caught:
        layers_of(image)
    assert caught.value.code == "layer-removed"


@pytest.mark.parametrize("layers", [None, 3, "text", [3, None], [f"{ONE}/../x"], {"a": 1}])
def test_record_of_another_form_names_no_layers(tmp_path: Path, layers: object) -> None:
    image = write_sif(tmp_path / "x.sif", [system(b"hsqs"), layer(ONE), record(layers)])
    assert layers_of(image).names == (ONE,)
    broken = write_sif(tmp_path / "y.sif", [system(b"hsqs"), layer(ONE), Part(0x4006, b"{", "ctk.json")])
    assert layers_of(broken).names == (ONE,)


@given(st.lists(NAMES, max_size=12))
def test_script_without_ctk_reads_the_same_names(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        image = write_sif(Path(directory, "-x y.sif"), [system(b"hsqs"), *map(layer, names)])
        found = layer_names(image)
        lines = gate_lines("x", userns=False).split("# The GPU gate.")[0]
        script = f'set -eu\n{lines}\nlayers_of "$1"'
        done = subprocess.run(
            ["bash", "-c", script, "bash", image.name], cwd=directory, capture_output=True, text=True, check=True
        )
    assert set(found) <= set(done.stdout.split())
    assert all(map(is_layer_name, done.stdout.split())), "nothing else reaches the script"
    assert (done.stdout == "") == (not found) or any(ONE in name for name in names)
