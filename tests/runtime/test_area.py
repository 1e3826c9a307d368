"""Which variables the runtime gets for a work area, and where it unpacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.runtime.area import area_environment, scratch_of, scratch_variable
from toolkit.support.paths import WorkArea

AREA = WorkArea(Path("/area"), "CTK_HOME")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for prefix in ("APPTAINER_", "SINGULARITY_"):
        monkeypatch.delenv(f"{prefix}CACHEDIR", raising=False)
        monkeypatch.delenv(f"{prefix}TMPDIR", raising=False)
    monkeypatch.delenv("TMPDIR", raising=False)
    return monkeypatch


def test_a_variable_that_the_user_set_is_left_alone(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("APPTAINER_CACHEDIR", "/mine")
    environment = area_environment(AREA)
    assert "APPTAINER_CACHEDIR" not in environment
    assert environment["SINGULARITY_CACHEDIR"] == "/area/cache"
    assert environment["TMPDIR"] == environment["APPTAINER_TMPDIR"] == "/area/tmp"


def test_the_scratch_is_where_the_runtime_looks_first(bare: pytest.MonkeyPatch) -> None:
    assert (scratch_variable(), scratch_of(AREA)) == (None, Path("/area/tmp"))
    bare.setenv("TMPDIR", "/local")
    assert (scratch_variable(), scratch_of(AREA)) == ("TMPDIR", Path("/local"))
    bare.setenv("APPTAINER_TMPDIR", "here")
    assert (scratch_variable(), scratch_of(AREA)) == ("APPTAINER_TMPDIR", Path("here").absolute())
    assert "TMPDIR" not in area_environment(AREA)
