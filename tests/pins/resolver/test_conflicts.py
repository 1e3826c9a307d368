"""Reasons in a user's words: conflicts, versions held back, and what a lock knows of a package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.python_targets import TENSORFLOW, TORCH
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.index.uv import Uv
from toolkit.pins.lock.protected import protect
from toolkit.pins.resolver import conflicts
from toolkit.pins.resolver.conflicts import fitting_bases, smallest, unavailable, way_to
from toolkit.pins.resolver.constraints import Constraint
from toolkit.pins.resolver.resolve import Conflict, Request, first_question
from toolkit.recipes.bases import bases_in
from toolkit.support.paths import shipped

UV = Uv("uv", Path("/nowhere"), Path("/nowhere"))


@given(st.lists(st.integers(0, 40), min_size=1, max_size=25, unique=True), st.data())
def test_the_smallest_conflict_is_found_with_few_questions(items: list[int], data: st.DataObject) -> None:
    guilty = data.draw(st.sets(st.sampled_from(items), min_size=1, max_size=3))
    asked = []

    def possible(some: list[str]) -> bool:
        asked.append(some)
        return not {str(number) for number in guilty} <= set(some)

    found = smallest([str(item) for item in items], possible)
    assert set(found) == {str(number) for number in guilty}
    assert len(asked) <= 4 * len(guilty) * (len(items).bit_length() + 1)


def request(base: object) -> Request:
    return Request(base, ("x",), protect(base, knowledge()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("torchaudio", "no release of torchaudio works with CUDA 13.2"),
        ("speechbrain>=1", "speechbrain>=1 needs torchaudio, and no release of torchaudio works with CUDA 13.2"),
    ],
)
def test_package_without_working_release_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, asked: str, message: str
) -> None:
    bound = Constraint("torchaudio", "<0", "no release of torchaudio works with CUDA 13.2")
    learned = replace(request(TORCH), packages=(asked,), learned=(bound,))
    monkeypatch.setattr(conflicts, "smallest_conflict", lambda *_: ((asked,), (bound,)))
    monkeypatch.setattr(conflicts, "_no_such_version", lambda *_: None)
    found = conflicts.explain_conflict(UV, learned, Conflict(learned, first_question(learned), "Because …"), [])
    assert found.message == message
    assert found.fix == f"Drop {asked.partition('>')[0]} from the recipe, or choose another base (`ctk bases`)."


def test_bases_that_fit_a_need_are_found_in_the_catalogue() -> None:
    bases = bases_in(shipped("defs")).values()
    assert fitting_bases("torch==2.6.*", bases) == ["pytorch-2.6", "pytorch-2.6-cuda12.4", "pytorch-2.6-cuda11.8"]
    assert fitting_bases("tensorflow<2.2", bases) == ["tensorflow-2.1", "tensorflow-1.15", "ngc-tensorflow-20.03-tf2"]
    assert fitting_bases("tensorflow==2.18.*", bases) == [], "that base is broken"
    assert fitting_bases("torch>=99", bases) == []
    assert fitting_bases("numpy>=1", bases) == []


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (
            "Because all versions of pytorch3d have no wheels with a matching Python ABI tag (e.g., `cp311`) and you "
            "require pytorch3d, we can conclude that your requirements are unsatisfiable.",
            "pytorch3d has only wheels for other Pythons or platforms",
        ),
        (
            "Because the requested Python version (>=3.11.10) does not satisfy Python>=3.12 and scipy>=1.18.0rc1 "
            "depends on Python>=3.12, we can conclude that scipy>=1.18.0rc1 cannot be used.",
            "scipy>=1.18.0rc1 needs Python >=3.12, but the base has Python 3.11.2",
        ),
        (
            "Because the current Python version (3.11.2) does not satisfy Python>=3.12 and scipy>=1.18.0rc1 depends "
            "on Python>=3.12, we can conclude that scipy>=1.18.0rc1 cannot be used.",
            "scipy>=1.18.0rc1 needs Python >=3.12, but the base has Python 3.11.2",
        ),
        (
            "Because torch>=1.10.0,<=1.12.1 has no wheels with a matching Python ABI tag (e.g., `cp311`) and only the",
            "torch>=1.10.0,<=1.12.1 has only wheels for other Pythons",
        ),
        ("Because x==1.0 has no usable wheels and only", "x==1.0 has only wheels for other"),
        ("Because x has no wheels with a matching platform tag (e.g., `manylinux_2_28_x86_64`)", "x has only wheels"),
        ("Because a depends on b", None),
    ],
)
def test_proof_gives_package_without_file_for_base(proof: str, words: str | None) -> None:
    said = unavailable(proof, TENSORFLOW)
    assert (said is None) if words is None else words in (said or "")
    assert (way_to(proof) is None) == (words is None)


def test_fix_for_missing_file_is_other_python_or_sources() -> None:
    python = (
        "Because the current Python version (3.11.2) does not satisfy Python>=3.12 and x depends on Python>=3.12, we"
    )
    assert way_to(python) == "A base with Python >=3.12 fits (`ctk bases`)."
    wheel = "Because all versions of x have no wheels with a matching platform tag"
    assert "`x @ git+https://HOST/PATH@COMMIT`" in (way_to(wheel) or "")
