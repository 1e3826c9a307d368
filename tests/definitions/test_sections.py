"""Long definitions, divided as the runtime can read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.pins.locks import SMALL, WHEEL
from toolkit.definitions.definition import define
from toolkit.definitions.sections import LARGEST, divided
from toolkit.recipes.model import Base, Recipe

HEADER = "Bootstrap: docker\n\n%post\n"


def document(size: int) -> str:
    return "cat > file <<'END'\n" + "x" * size + "\nEND\n"


def test_a_short_definition_stays_as_it_is() -> None:
    text = HEADER + document(1000) + "true\n\n%labels\n"
    assert divided(text, "END") == text


def test_a_long_section_is_divided_after_a_here_document() -> None:
    text = HEADER + document(30_000) + document(30_000) + "true\n\n%labels\n" + "a b\n" * 20_000
    assert divided(text, "END") == text.replace("END\ncat", "END\n%post\ncat")
    assert divided(text, "END").replace("END\n%post\n", "END\n") == text


def test_a_definition_of_many_packages_has_no_section_that_is_too_long() -> None:
    packages = tuple(replace(WHEEL, name=f"package-{number}", required_by=("recipe",) * 5) for number in range(400))
    recipe = Recipe("mine", Path("mine.toml"), Base("b", "docker", "a/b"), packages=("timm",))
    text = define(recipe, lock=replace(SMALL, packages=packages, present=())).text
    sections = text.split("\n%post\n")
    assert len(sections) > 3
    assert max(len(section.encode()) for section in sections) < LARGEST + (16 << 10)
    assert all(f'"package-{number}"' in text for number in range(400))
