"""Preferred releases that were compiled for numpy 1 are not taken over numpy 2."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest
from packaging.version import Version

from tests.pins.locks import SHA
from tests.pins.python_targets import TENSORFLOW, TORCH
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.index.wheels import File
from toolkit.pins.lock.model import LockedPackage
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver.numpy_abi import built_for_numpy_1
from toolkit.pins.resolver.releases import Release
from toolkit.pins.resolver.resolve import Request, Resolution

COMPILED = "pandas-1.5.3-cp311-cp311-manylinux_2_17_x86_64.whl"


def wheel(name: str, year: int) -> File:
    return File(name, f"https://x/{name}", SHA, datetime(year, 1, 1, tzinfo=timezone.utc))


RELEASES = [
    Release(Version("2.2.2"), wheel("pandas-2.2.2-cp311-cp311-manylinux_2_17_x86_64.whl", 2025)),
    Release(Version("2.0.3"), wheel("pandas-2.0.3-cp311-cp311-manylinux_2_17_x86_64.whl", 2023)),
    Release(Version("1.5.3"), wheel(COMPILED, 2023)),
]
REQUEST = Request(TORCH, ("pandas",), protect(TORCH, knowledge()), prefer=("pandas==1.5.3",))
CHOSEN = Resolution((LockedPackage("pandas", "1.5.3", COMPILED, SHA),), {"pandas": wheel(COMPILED, 2023)})


def excluded(
    request: Request = REQUEST, resolution: Resolution = CHOSEN, requires: tuple[str, ...] = ("numpy>=1.21",)
) -> list[str]:
    return [bound.line for bound in built_for_numpy_1(request, resolution, lambda _: requires, lambda _: RELEASES)]


def test_release_compiled_before_numpy_2_is_excluded_with_older_ones() -> None:
    assert excluded() == ["pandas>2.0.3"]
    assert excluded(replace(REQUEST, prefer=("pandas<2",))) == ["pandas>2.0.3"]
    (bound,) = built_for_numpy_1(REQUEST, CHOSEN, lambda _: ("numpy",), lambda _: RELEASES)
    assert bound.by == "pandas 1.5.3 was compiled for numpy 1; the image has numpy 2.1.2"


@pytest.mark.parametrize(
    ("file", "year", "requires"),
    [
        (COMPILED, 2025, ("numpy",)),
        ("pandas-1.5.3-py3-none-any.whl", 2023, ("numpy",)),
        ("pandas-1.5.3.tar.gz", 2023, ("numpy",)),
        (COMPILED, 2023, ("pytz", "numpy; extra == 'all'")),
    ],
)
def test_release_that_numpy_2_may_serve_is_kept(file: str, year: int, requires: tuple[str, ...]) -> None:
    assert excluded(REQUEST, replace(CHOSEN, files={"pandas": wheel(file, year)}), requires) == []


def test_only_preferences_are_excluded_and_only_over_numpy_2() -> None:
    assert excluded(replace(REQUEST, prefer=())) == []
    assert excluded(replace(REQUEST, packages=("pandas==1.5.3",))) == []
    assert excluded(replace(REQUEST, target=TENSORFLOW)) == []
    with_numpy_1 = replace(CHOSEN, packages=(*CHOSEN.packages, LockedPackage("numpy", "1.26.4", "n.whl")))
    assert excluded(REQUEST, with_numpy_1) == []
