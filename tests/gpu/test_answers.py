"""What the driver's answers mean."""

from __future__ import annotations

from toolkit.gpu.answers import answer
from toolkit.support.explanations import explanations


def test_each_answer_has_a_code_of_the_catalogue() -> None:
    known = explanations()
    for number in (2, 34, 46, 100, 214, 304, 802, 803, 804, 999):
        found = answer(number)
        assert found.code in known
        assert found.code != "cuda-init-failed"
        assert found.meaning
        assert found.fix.endswith(".")


def test_unknown_answer_is_a_failed_start() -> None:
    assert answer(12345).code == "cuda-init-failed"
