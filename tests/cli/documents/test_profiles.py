"""The documents of cluster profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.documents.test_images import checked
from tests.scheduler.profiles import SHIPPED, TWO_PARTITIONS
from toolkit.cli.documents import profiles as documents
from toolkit.scheduler.estimate import estimate
from toolkit.scheduler.profile_file import load_profile
from toolkit.scheduler.resources import Resources


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_profile_has_a_document(path: Path) -> None:
    found = checked("cluster", {"cluster": documents.profile(load_profile(path))})["cluster"]
    assert found["name"] == path.stem


def test_profile_with_limits_in_seconds_and_bytes() -> None:
    document = checked("cluster", {"cluster": documents.profile(TWO_PARTITIONS)})["cluster"]
    debug = document["partitions"][0]
    assert (debug["default"], debug["max_seconds"], debug["memory_bytes"]) == (True, 300, 16 << 30)
    assert document["gpu_types"][0]["memory_bytes"] == 32 << 30


def test_list_has_valid_and_invalid_files() -> None:
    rows = [
        documents.listed("mine", Path("mine.toml"), "here", TWO_PARTITIONS),
        documents.listed("broken", Path("broken.toml"), "user", None),
    ]
    found = checked("clusters", {"default": None, "clusters": rows})["clusters"]
    assert [(row["valid"], row["scheduler"]) for row in found] == [(True, "slurm"), (False, None)]


def test_estimate_with_and_without_a_time() -> None:
    known = checked("estimate", documents.estimate(estimate(TWO_PARTITIONS, Resources()), "mine"))
    assert (known["seconds"], known["partition"]) == (300, "debug")
    unknown = checked("estimate", documents.estimate(estimate(TWO_PARTITIONS, Resources(partition="x")), None))
    assert (unknown["seconds"], unknown["node_hours"], unknown["cluster"]) == (None, None, None)
