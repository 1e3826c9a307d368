"""The rows of `ctk bases check`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.documents.test_images import checked
from toolkit.cli.documents.registry import checked_base
from toolkit.pins.bases.check import Checked, Description, State
from toolkit.pins.bases.registry import Named
from toolkit.recipes.model import Base, Bootstrap, DigestOf

if TYPE_CHECKING:
    from collections.abc import Mapping

OLD, NEW = f"sha256:{'0a' * 32}", f"sha256:{'1b' * 32}"
INDEX = "application/vnd.oci.image.index.v1+json"
BASE = Base("ours", Bootstrap.DOCKER, "ours/image:1", digest=OLD)
MOVED = Checked(
    BASE,
    State.MOVED,
    Named(NEW, INDEX),
    Description(NEW, DigestOf.INDEX, ("x86_64", "aarch64"), 4096),
    pullable=True,
    login="/home/ann/.docker/config.json",
)


def row(found: Checked) -> Mapping[str, Any]:
    document = checked("bases-check", {"bases": [checked_base(found)], "written": None})
    return dict(document["bases"][0])


def test_moved_base_has_both_digests() -> None:
    assert row(MOVED) == {
        "name": "ours",
        "reference": "ours/image:1",
        "state": "moved",
        "digest": OLD,
        "tag_digest": NEW,
        "media_type": INDEX,
        "pullable": True,
        "image_digest": NEW,
        "digest_of": "index",
        "architectures": ["x86_64", "aarch64"],
        "size_bytes": 4096,
        "login": "/home/ann/.docker/config.json",
    }


def test_image_to_start_from_may_differ_from_what_the_tag_names() -> None:
    inside = replace(MOVED, state=State.SAME, image=Description(OLD, DigestOf.IMAGE, ("aarch64",)), pullable=None)
    found = row(inside)
    assert (found["tag_digest"], found["image_digest"], found["digest_of"]) == (NEW, OLD, "image")
    assert (found["size_bytes"], found["pullable"]) == (None, None)


@pytest.mark.parametrize("state", list(State))
def test_base_without_an_answer_has_the_same_keys(state: State) -> None:
    found = row(Checked(replace(BASE, digest=None), state))
    assert found.keys() == row(MOVED).keys()
    assert (found["state"], found["digest"], found["image_digest"], found["architectures"]) == (state, None, None, [])
