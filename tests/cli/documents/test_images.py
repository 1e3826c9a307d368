"""The documents of commands that need a runtime, a GPU or a cluster: from plain values, held against their schemas."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.pins.locks import SMALL
from tests.schemas import check_document
from toolkit.builds.record import Record, RecordedBase
from toolkit.cli.documents import images
from toolkit.lab.cluster import Condition
from toolkit.lab.observe import FinishedJob, Node, QueuedJob
from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import LabPlan
from toolkit.lab.registry import Lab
from toolkit.lab.status import Status
from toolkit.pins.lock.changes import compare_locks
from toolkit.recipes.model import Base, Recipe
from toolkit.runtime.inspection import SelfDescription

if TYPE_CHECKING:
    from collections.abc import Mapping

IMAGE, LOG = Path("mine.sif"), Path("mine.sif.build.log")
RECORD = Record("recipe:mine", RecordedBase("debian-12"), "no-framework", ("no-framework",))
RECIPE = Recipe("mine", Path("defs/mine.toml"), Base("debian-12", "debootstrap", "bookworm"), import_skip=("horovod",))
LAB = Lab(LabPlan(), LabPaths(Path("/tmp/ctk-lab-x")), "login", 6000)
NODE = Node("n1", "idle", 4, 0, 2, 0, "", datetime(2026, 11, 22, 1, 2, 3))
QUEUED = QueuedJob("12", "train", "gpu", "RUNNING", "1-02:03:04", "n1")
FINISHED = FinishedJob(
    "12_3", 15, "train", "ann", "gpu", "COMPLETED", 0, 0, "n1", datetime(2026, 11, 22), None, None, "/x"
)
STATUS = Status(LAB, Condition.UP, (NODE, replace(NODE, slurmd_started=None)), (QUEUED,), (FINISHED,), pmix=True)


def checked(name: str, keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a document, once its schema has nothing against them."""
    check_document({"schema": f"ctk.{name}/1", **keys, "findings": []})
    return keys


def test_a_built_image_has_its_size_in_bytes_and_its_times_in_seconds() -> None:
    change = compare_locks(None, SMALL)
    document = images.built_image(IMAGE, LOG, RECORD, 4096, change, built=True, seconds=12.345, import_seconds=0.5)
    found = checked("build", document)
    assert (found["size_bytes"], found["seconds"], found["import_seconds"]) == (4096, 12.3, 0.5)
    assert found["lock_change"]["added"] == ["keras-bert==0.89.0", "timm==1.0.3"]


def test_an_image_that_is_up_to_date_has_the_same_keys() -> None:
    made = images.built_image(IMAGE, LOG, RECORD, 4096, None, built=True, seconds=1, import_seconds=1)
    kept = checked("build", images.built_image(IMAGE, LOG, RECORD, 4096, None))
    assert kept.keys() == made.keys()
    assert (kept["built"], kept["import_seconds"], kept["lock_change"]) == (False, None, None)


def test_the_size_of_a_sandbox_is_not_known() -> None:
    assert checked("build", images.built_image(IMAGE, LOG, RECORD, 0, None))["size_bytes"] is None


@pytest.mark.parametrize("record", [RECORD, None])
def test_an_inspection_has_the_record_as_the_image_has_it(record: Record | None) -> None:
    description = SelfDescription((("ctk.recipe", "mine"),), "Bootstrap: x\n", "export A=1", "exec sh")
    found = checked("inspect", images.inspection(IMAGE, description, record))
    assert found["labels"] == {"ctk.recipe": "mine"}
    assert found["record"] == (record and record.as_document())
