"""What is said of a base that does not work, and of a digest that one source states."""

from __future__ import annotations

import pytest

from toolkit.recipes.evidence import judge_record
from toolkit.recipes.model import Base, Evidence
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Severity

BROKEN = Base("b", "docker", "a/b:1", broken="the wrong cuDNN")
SINGLE = Base("s", "docker", "a/s:1", digest="sha256:1", evidence=Evidence.SINGLE)


def test_broken_base_is_refused_with_its_reason_and_the_option() -> None:
    with pytest.raises(WrongInput, match="the base b does not work: the wrong cuDNN") as refused:
        judge_record(BROKEN, allow_broken=False)
    assert (refused.value.code, refused.value.exit_status) == ("broken-base", 2)
    assert "--allow-broken-base" in (refused.value.fix or "")


def test_broken_base_that_is_allowed_is_a_warning() -> None:
    (found,) = judge_record(BROKEN, allow_broken=True)
    assert (found.code, found.severity) == ("broken-base", Severity.WARNING)


def test_digest_of_one_source_is_said_with_the_command_that_asks() -> None:
    (found,) = judge_record(SINGLE, allow_broken=False)
    assert (found.code, found.severity) == ("unconfirmed-digest", Severity.INFO)
    assert found.fix == "`ctk bases check s` asks the registry."


@pytest.mark.parametrize(
    "base",
    [
        Base("plain", "docker", "a/b:1"),
        Base("sure", "docker", "a/b:1", digest="sha256:1", evidence=Evidence.CONFIRMED),
        Base("tag", "docker", "a/b:1", evidence=Evidence.SINGLE),
    ],
    ids=lambda base: base.name,
)
def test_base_without_doubt_has_no_finding(base: Base) -> None:
    assert judge_record(base, allow_broken=False) == ()
