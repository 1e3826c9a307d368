"""Which architecture a command is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.recipes.architectures import (
    architecture_of,
    listed_architectures,
    only_architecture,
    parse_architecture,
    per_architecture,
)
from toolkit.recipes.model import Base, Bootstrap, Recipe, Target
from toolkit.support.errors import WrongInput

BASE = Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm")


def recipe(*architectures: str) -> Recipe:
    return Recipe("mine", Path("defs/mine.toml"), BASE, target=Target(architectures=architectures))


def test_architecture_has_its_usual_names() -> None:
    assert [parse_architecture(text) for text in ("x86_64", "AMD64", "arm64")] == ["x86_64", "x86_64", "aarch64"]
    with pytest.raises(WrongInput, match="riscv64"):
        parse_architecture("riscv64")


def test_option_for_one_architecture_refuses_several_and_not_a_repetition() -> None:
    assert (only_architecture(None), only_architecture(["arm64", "aarch64"])) == (None, "aarch64")
    for several in (["arm64", "amd64"], ["x86_64,aarch64"]):
        with pytest.raises(WrongInput, match="takes one architecture here, not"):
            only_architecture(several)


def test_option_takes_several_architectures_in_any_spelling() -> None:
    assert listed_architectures(["arm64, amd64", "aarch64"]) == ("aarch64", "x86_64")
    assert listed_architectures([]) == ()
    with pytest.raises(WrongInput, match="'' is not an architecture"):
        listed_architectures(["arm64,"])


@pytest.mark.parametrize("host", ["x86_64", "aarch64", "ppc64le"])
@pytest.mark.parametrize("named", [(), ("x86_64",), ("aarch64",), ("x86_64", "aarch64")])
def test_the_host_counts_where_the_recipe_allows_it(
    monkeypatch: pytest.MonkeyPatch, host: str, named: tuple[str, ...]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: host)
    found = architecture_of(recipe(*named))
    assert found == (host if not named or host in named else named[0])
    assert found in [architecture_of(one) for one in per_architecture(recipe(*named))]


def test_a_recipe_is_locked_for_what_is_named_else_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    both = ("x86_64", "aarch64")

    def locked(one: Recipe, named: tuple[str, ...] = ()) -> tuple[str, ...]:
        return tuple(map(architecture_of, per_architecture(one, named)))

    assert locked(recipe()) == ("x86_64",)
    assert per_architecture(recipe()) == (recipe(),)
    assert locked(recipe(*both)) == both
    assert locked(recipe(*both), ("aarch64",)) == ("aarch64",)
    assert locked(recipe("x86_64"), both) == both
