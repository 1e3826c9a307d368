"""The keys of a build's layers, and which layers the store has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.builds.asked import context, request
from tests.pins.locks import SHA, SMALL
from toolkit.builds.layers.added import names_of
from toolkit.builds.layers.chain import kept_layers, key_of_base, key_of_step, known_groups, over_kept
from toolkit.builds.plan import BuildPlan
from toolkit.builds.record import Record
from toolkit.definitions.layered import LayeredSteps, LayerName, LayerStep, packages_step
from toolkit.pins.bases.steady import PresentBase
from toolkit.pins.lock.model import LockedPackage
from toolkit.pins.store import Found
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


def test_packages_are_laid_over_the_kept_layer_to_which_the_lock_adds_least(here: Path) -> None:
    recipe, plan, there = planned(here, HUB, DIGEST)
    locks = {names: replace(SMALL, packages=tuple(map(locked_wheel, names)), builds=()) for names in ("a", "ab", "abc")}
    plan = replace(plan, locked=Found(locks["abc"], here / "x.lock.toml"))
    there.locks.cache.mkdir(parents=True, exist_ok=True)
    before = key_of_base(recipe, here / "base.sif", plan, there)
    assert over_kept(before, plan, there) is None
    for names in ("ab", "a"):
        known_groups(before, there).remember((tuple(names),), alone=False)
        assert over_kept(before, plan, there) is None, "names alone are nothing"
    steps = LayeredSteps((packages_step(locks["abc"]),))
    for names in ("a", "ab"):
        key = key_of_step(packages_step(locks[names]), before, plan, there)
        _publish(there, key, here / names)
        way = over_kept(before, plan, there)
        assert way is not None
        assert names_of(way[0]) == (tuple(names), tuple("abc"[len(names) :]))
        assert not list(kept_layers(steps, recipe, here / "base.sif", plan, there))
    _publish(there, way[1], here / "added")
    known_groups(before, there).remember(names_of(way[0]), alone=False)
    assert over_kept(before, plan, there) == way
    assert list(kept_layers(steps, recipe, here / "base.sif", plan, there)) == [LayerName.PACKAGES]


def locked_wheel(name: str) -> LockedPackage:
    return LockedPackage(name, "1.0", f"{name}-1.0-py3-none-any.whl", SHA)


def _publish(there: BuildContext, key: str, file: Path) -> None:
    file.write_bytes(b"layer")
    there.store.publish(Kind.LAYER, key, file, {})
