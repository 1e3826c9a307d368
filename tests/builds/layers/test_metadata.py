"""The metadata of a layered image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, overlay, system, write_sif
from toolkit.builds.layers.layer import Layer
from toolkit.builds.layers.metadata import assemble, require_room
from toolkit.inventory.formats.sif import DataType, read_sif
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


def test_assembled_image_keeps_only_partitions_and_the_oci_config(tmp_path: Path) -> None:
    parts = [
        Part(0x4001, b"Bootstrap: docker\n"),
        Part(0x4006, b'{"of": "base"}', name="inspect-metadata.json"),
        system(b"hsqs" * 10),
        overlay(b"hsqs" * 20),
        Part(0x4006, b'{"oci": 1}', name="oci-config.json"),
        Part(0x4006, b'{"schema": "ctk.image/1"}', name="ctk.json"),
        Part(0x4009, b"sbom"),
        Part(0x4005, b"signature"),
    ]
    image = write_sif(tmp_path / "x.sif", parts)
    squashed = tmp_path / "layer"
    squashed.write_bytes(b"hsqs" * 30)
    assemble(image, [Layer(squashed, "ctk-layer-1", 120)], "Bootstrap: localimage\n", b'{"of": "image"}')
    sif = read_sif(image)
    partitions = sif.of_type(DataType.PARTITION)
    assert [(found.size, found.name) for found in partitions] == [(40, ""), (80, ""), (120, "ctk-layer-1")]
    assert sif.definition() == "Bootstrap: localimage\n"
    assert sif.json_object("inspect-metadata.json") == {"of": "image"}
    assert sif.json_object("oci-config.json") == {"oci": 1}
    assert sif.json_object("ctk.json") is None
    assert len(sif.descriptors) == 6


def test_base_without_descriptors_for_the_layers_is_named_before_a_script_runs(tmp_path: Path) -> None:
    """Of 48 descriptors, an image needs five besides its partitions; those of the base's own metadata become free."""
    base = write_sif(tmp_path / "x.sif", [Part(0x4001, b"x"), system(b"hsqs"), *[overlay(b"hsqs")] * 40])
    require_room(base, 2)
    with pytest.raises(WrongInput, match=f"{base} has no room for 8 more data objects") as error:
        require_room(base, 3)
    assert (error.value.code, error.value.fix) == (
        "too-many-layers",
        f"Merge its layers into one partition: ctk build {base} --flat -o x-flat.sif",
    )
