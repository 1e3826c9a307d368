"""What an upgrade may change."""

from __future__ import annotations

from toolkit.pins.lock.upgrade import FULL_UPGRADE, NO_UPGRADE, Upgrade


def test_only_the_named_packages_may_change() -> None:
    some = Upgrade(frozenset({"timm"}))
    assert [some.keeps(name) for name in ("timm", "numpy")] == [False, True]
    assert [bool(upgrade) for upgrade in (some, FULL_UPGRADE, NO_UPGRADE)] == [True, True, False]
    assert NO_UPGRADE.keeps("timm")
    assert not FULL_UPGRADE.keeps("timm")
