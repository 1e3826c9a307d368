"""Images that are damaged or made to hurt: one clear error, soon, in little memory. `make soak` does many more."""

from __future__ import annotations

import pytest

from tests.soak.images import run


@pytest.mark.programs
def test_hostile_images_sample_of_soak() -> None:
    report = run(seed=20_261_121, count=400)
    assert report.failures == []
    assert report.count == 400
    assert report.verdicts
    assert report.errors["error corrupt-image"] > 100
