"""The keys of a build's layers, and which layers the store has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.builds.asked import context, request
from toolkit.builds.layers.chain import kept_layers, key_of_base, key_of_step
from toolkit.builds.plan import BuildPlan
from toolkit.builds.record import Record
from toolkit.definitions.layered import LayeredSteps, LayerName, LayerStep
from toolkit.pins.bases.steady import PresentBase
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.store.store import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.context import BuildContext

DIGEST = f"sha256:{'a1' * 32}"
HUB = Base("hub", Bootstrap.DOCKER, "hub.example/a/b:1", DIGEST)


def planned(here: Path, base: Base, digest: str | None) -> tuple[Recipe, BuildPlan, BuildContext]:
    recipe = Recipe("mine", here / "defs/mine.toml", base)
    asked = replace(request("mine", output=here / "x.sif"), recipe=recipe)
    plan = BuildPlan(asked, None, Record("recipe:mine"), PresentBase(here / "base.sif", digest))  # type: ignore[arg-type]
    return recipe, plan, context(here, preview=False)


def test_base_without_a_digest_counts_by_its_content(here: Path) -> None:
    debian = Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm")
    image = here / "made.sif"
    image.write_bytes(b"one")
    recipe, plan, there = planned(here, debian, None)
    first = key_of_base(recipe, image, plan, there)
    image.write_bytes(b"two")
    assert key_of_base(recipe, image, plan, there) != first
    recipe, plan, there = planned(here, HUB, DIGEST)
    first = key_of_base(recipe, image, plan, there)
    image.write_bytes(b"three")
    assert key_of_base(recipe, image, plan, there) == first


def test_layers_above_one_that_is_not_kept_are_not_kept(here: Path) -> None:
    recipe, plan, there = planned(here, HUB, DIGEST)
    names = list(LayerName)
    steps = LayeredSteps(tuple(LayerStep(name, f"echo {name}") for name in names))
    keys = [key_of_base(recipe, here / "base.sif", plan, there)]
    for step in steps.layers:
        keys.append(key_of_step(step, keys[-1], plan, there))
    for number in (0, 2, 1):
        file = here / f"layer-{number}"
        file.write_bytes(b"layer")
        there.store.publish(Kind.LAYER, keys[number + 1], file, {})
        kept = list(kept_layers(steps, recipe, here / "base.sif", plan, there))
        assert kept == (names if number == 1 else names[:1])
