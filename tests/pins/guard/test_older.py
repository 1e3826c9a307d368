"""Which version is proposed in place of one that cannot be imported: what is asked of the index, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import distribution, target
from toolkit.pins.guard import older
from toolkit.pins.guard.likely import Likely
from toolkit.pins.guard.trials import ImportFailure
from toolkit.pins.index.uv import Uv
from toolkit.pins.lock.protected import Pin, ProtectedSet
from toolkit.pins.resolver.question import Answer
from toolkit.pins.resolver.resolve import Request

if TYPE_CHECKING:
    from toolkit.pins.resolver.question import Question

FAILURE = ImportFailure("transformers", "5.1.0", "trap transformers with torch", "AutoModel is a dummy")


@dataclass
class Index:
    """Answers for the last line that is asked; every other question has no solution."""

    answers: dict[str, Answer]
    asked: list[str] = field(default_factory=list)

    def ask(self, _uv: Uv, question: Question, **_options: bool) -> Answer:
        self.asked.append(question.packages[-1])
        assert sum(line.startswith("transformers") for line in question.packages) == 1, "its own line is replaced"
        return self.answers.get(question.packages[-1], Answer({}, {}, proof="no"))


def request() -> Request:
    base = target(distribution("torch", "2.5.1"))
    return Request(base, ("timm", "transformers"), ProtectedSet((Pin("torch", "2.5.1", "the base's PyTorch"),)))


def proposed(
    monkeypatch: pytest.MonkeyPatch, likely: Likely | None, answers: dict[str, dict[str, str]], **added: str
) -> tuple[tuple[str, str] | None, list[str]]:
    index = Index({line: Answer(versions, {}) for line, versions in answers.items()})
    monkeypatch.setattr(older, "ask", index.ask)
    found = older.likely_version(
        Uv("uv", Path("/cache"), Path("/scratch")), request(), FAILURE, likely, {"transformers": "5.1.0", **added}
    )
    return found, index.asked


def test_a_requirement_that_fits_the_base_is_proposed_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = proposed(monkeypatch, Likely("", need="pyarrow<22"), {"pyarrow<22": {"pyarrow": "21.0"}})
    assert found == ("pyarrow<22", "compatible with the base")
    assert asked == ["pyarrow<22"]


def test_protected_framework_selects_release_with_accepting_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = {"transformers[torch]<5.1.0": {"transformers": "4.57.6"}}
    found, _ = proposed(monkeypatch, Likely("", need="torch>=2.6"), answers)
    assert found == ("transformers==4.57.6", "its extra torch accepts the torch of the base")


def test_a_release_without_such_an_extra_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "transformers[torch]<5.1.0"
    index = Index(
        {
            line: Answer({"transformers": "5.0.1"}, {}, missing_extras=(("transformers", "5.0.1", "torch"),)),
            "transformers<5.1": Answer({"transformers": "5.0.1"}, {}),
        }
    )
    monkeypatch.setattr(older, "ask", index.ask)
    found = older.likely_version(
        Uv("uv", Path("/cache"), Path("/scratch")), request(), FAILURE, Likely("", need="torch>=2.6"), {}
    )
    assert found == ("transformers==5.0.1", "the newest release before 5.1 that fits")
    assert index.asked == ["torch>=2.6", line, "transformers[pytorch]<5.1.0", "transformers<5.1"]


def test_without_a_known_cause_the_series_before_is_proposed_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = proposed(monkeypatch, None, {"transformers<5.1": {"transformers": "5.0.2"}})
    assert found == ("transformers==5.0.2", "the newest release before 5.1 that fits")
    assert proposed(monkeypatch, None, {})[0] is None


def test_too_new_dependency_is_the_one_to_downgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    likely = Likely("", other="huggingface-hub")
    answers = {"huggingface-hub<1.2": {"huggingface-hub": "1.1.9"}, "transformers<5.1": {"transformers": "5.0"}}
    found, _ = proposed(monkeypatch, likely, answers, **{"huggingface-hub": "1.2.3"})
    assert found == ("huggingface-hub==1.1.9", "the newest release before 1.2 that fits")
    found, _ = proposed(monkeypatch, replace(likely, other="torch"), answers)
    assert found == ("transformers==5.0", "the newest release before 5.1 that fits"), "the base's own stays"


@pytest.mark.parametrize(("version", "series"), [("4.57.1", "4.57"), ("5.0.2", "5"), ("202511", "202511"), ("?", None)])
def test_the_series_of_a_version(version: str, series: str | None) -> None:
    assert older._series(version) == series
