"""Hard links of the base that were not copied before the script ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builds.layers.trees import lower
from toolkit.builds.layers.links import check_links
from toolkit.builds.layers.normalise import CannotNormalise, Changes

if TYPE_CHECKING:
    from pathlib import Path


def test_links_of_which_one_name_stays_are_refused(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0/one").write_text("x")
    (tmp_path / "0/two").hardlink_to(tmp_path / "0/one")
    found = lower(tmp_path, {})
    one = found.find("one")
    assert one is not None
    with pytest.raises(CannotNormalise, match=r"^/one of the base, which is the same file as /two, "):
        check_links(found, Changes({one.key: {"one"}}), ())
    check_links(found, Changes({one.key: {"one"}}), ("one", "two"))
    check_links(found, Changes({one.key: {"one", "two"}}), ())
