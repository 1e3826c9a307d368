"""Locked packages can be imported: undeclared.toml holds back releases that need more than they declare."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.installed_bases import Installed
from benchmarks.trial import Bench
from toolkit.pins.index.uv import open_uv
from toolkit.pins.resolver import working
from toolkit.pins.resolver.undeclared import undeclared_bounds

if TYPE_CHECKING:
    from pathlib import Path

# A small stand-in for a framework that was compiled for numpy 1: the wheels of real ones are gigabytes.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SMALL = Installed("small", "numpy 1", "2024-06-01", ("numpy==1.26.4", "pip==24.0"), ("numpy",), PYTHON)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, ground: Path) -> Bench:
    return Bench(open_uv(ground / "pins"), SMALL, tmp_path_factory.mktemp("importable"))


def test_a_release_that_does_not_import_over_the_base_is_held_back_and_then_imports(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (entry,) = [bound for bound in undeclared_bounds() if bound.package == "pyarrow" and bound.holds(bench.versions)]
    with monkeypatch.context() as patch:
        patch.setattr(working, "undeclared_bounds", tuple)
        newest = bench.lock("pyarrow")
    failure = bench.failure_of(newest, "pyarrow")
    assert failure is not None
    assert "numpy" in failure.error.lower()
    assert failure.owners == ("pyarrow",)
    lock = bench.lock("pyarrow")
    assert bench.failure_of(lock, "pyarrow") is None
    (held,) = lock.held
    assert (held.name, held.newest) == ("pyarrow", newest.packages[0].version)
    assert entry.why in held.because
    assert bench.failure_of(bench.lock("six"), "six") is None
