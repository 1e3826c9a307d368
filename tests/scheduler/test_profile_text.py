"""The text of a profile is read as the same profile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scheduler.profiles import SHIPPED, TWO_PARTITIONS, WHOLE
from toolkit.scheduler.profile_file import load_profile
from toolkit.scheduler.profile_text import profile_text
from toolkit.scheduler.profiles import GpuType, Partition

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["whole", *(path.stem for path in sorted(SHIPPED.glob("*.toml")))])
def test_profile_survives_its_text(tmp_path: Path, name: str) -> None:
    (tmp_path / "whole.toml").write_text(WHOLE)
    profile = load_profile(tmp_path / "whole.toml" if name == "whole" else SHIPPED / f"{name}.toml")
    path = tmp_path / profile.path.name
    path.write_text(profile_text(profile, ["A comment", ""]))
    assert path.read_text().startswith("# A comment\n#\n")
    assert load_profile(path) == replace(profile, path=path)


words = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=10)
partitions = st.builds(
    Partition,
    st.sampled_from(["a", "b-1", "c.x"]),
    description=words,
    max_time=st.none() | st.integers(10**6, 10**8),
    default_time=st.none() | st.integers(1, 10**6),
    cores=st.none() | st.integers(1, 999),
    memory=st.none() | st.integers(1, 10**15 - 1),
    gpus=st.none() | st.integers(0, 16),
    price=st.none() | st.floats(0, 10**6),
)


@given(words, st.lists(partitions, max_size=3, unique_by=lambda partition: partition.name), words)
def test_any_profile_survives_its_text(
    tmp_path_factory: pytest.TempPathFactory, description: str, found: list[Partition], model: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "mine.toml"
    profile = replace(
        TWO_PARTITIONS,
        path=path,
        description=description,
        partitions=tuple(found),
        gpu_types=(GpuType("v100", model or None),),
    )
    path.write_text(profile_text(profile), encoding="utf-8")
    assert load_profile(path) == profile
