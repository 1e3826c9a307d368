"""What an image remembers of a path: enough to know it again, and not the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.builds.identity import current_identity, path_identity
from toolkit.builds.target import BuildTarget, TargetKind

if TYPE_CHECKING:
    from pathlib import Path


def test_identity_of_a_path_has_its_name_and_tells_directories_apart() -> None:
    assert path_identity("/home/ann/k.def").startswith("k.def#")
    assert path_identity("/home/ann/k.def") != path_identity("/home/bob/k.def")
    assert path_identity("/x/\udcff.def").startswith("\udcff.def#")


@pytest.mark.parametrize(
    ("target", "earlier"),
    [
        (BuildTarget(TargetKind.DEFINITION, "k.def"), "definition:{here}/k.def"),
        (BuildTarget(TargetKind.SANDBOX, "sb/"), "sandbox:{here}/sb"),
        (BuildTarget(TargetKind.REFERENCE, "oci:layout:t"), "reference:oci:{here}/layout:t"),
        (BuildTarget(TargetKind.REFERENCE, "docker-archive:x.tar"), "reference:docker-archive:{here}/x.tar"),
        (BuildTarget(TargetKind.REFERENCE, "docker://a/b:1"), "reference:docker://a/b:1"),
        (BuildTarget(TargetKind.RECIPE, "mine"), "recipe:mine"),
    ],
)
def test_current_identity_of_an_earlier_record_with_a_path(here: Path, target: BuildTarget, earlier: str) -> None:
    assert current_identity(earlier.format(here=here)) == target.identity == current_identity(target.identity)
    assert str(here) not in target.identity
