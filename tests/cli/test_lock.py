"""`ctk lock` as a user types it."""

from __future__ import annotations

import pytest

from tests.pins.locks import SMALL
from toolkit.cli.lock import _upgrade
from toolkit.support.errors import WrongInput


def test_only_what_the_lock_adds_can_be_upgraded() -> None:
    chosen = _upgrade(SMALL, ["Timm"])
    assert [chosen.keeps(name) for name in ("timm", "keras-bert")] == [False, True]
    assert _upgrade(SMALL, []).everything
    with pytest.raises(WrongInput, match="cannot upgrade tim: the lock"):
        _upgrade(SMALL, ["tim"])
