"""Whether the layers in a new image are those of the store; tests/real/test_layer_store.py builds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import Part, system, write_sif
from toolkit.builds.layers import build
from toolkit.builds.layers.build import _digests
from toolkit.builds.layers.layer import Layer
from toolkit.inventory.formats.sif import read_sif
from toolkit.inventory.formats.sif_digests import digest_of_part
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

NAME = f"ctk-layer-{'0' * 32}"


def test_layer_of_a_shared_store_is_compared_in_the_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Part(0x4004, b"hsqs layer", NAME, partition_type=4)
    image = write_sif(tmp_path / "a.sif", [system(b"hsqs base"), layer])
    with image.open("rb") as file:
        right = digest_of_part(file.fileno(), read_sif(image).descriptors[1])
    wrong = f"sha256:{'0' * 64}"
    layers = [Layer(tmp_path / "layer.sqfs", NAME, 10, digest) for digest in (right, wrong)]
    for theirs in (False, True):
        monkeypatch.setattr(build, "others_can_change_in", lambda _path, theirs=theirs: theirs)
        assert _digests(image, (layers[0],)) == {NAME: right}
    with pytest.raises(ProgramFailed, match=r"layer\.sqfs does not have the content") as error:
        _digests(image, (layers[1],))
    assert error.value.code == "store-changed"
    assert _digests(image, (Layer(tmp_path / "metadata", NAME, 10),)) == {}
