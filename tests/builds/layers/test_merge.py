"""Layered images in builds by the runtime, which leaves layers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, request
from tests.inventory.making import Part, overlay, system, write_sif
from toolkit.builds.layers.merge import (
    MergeLayers,
    is_layered,
    layered_base,
    merge_command,
    over_flat_base,
    refuse_layered,
)
from toolkit.builds.record import Record
from toolkit.builds.resolve import resolve
from toolkit.builds.script import build_commands
from toolkit.builds.steps import BuildImage, Workspace, steps_of
from toolkit.builds.target import TargetKind, parse_target
from toolkit.definitions.definition import define
from toolkit.definitions.parts import parts_of
from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.model import Base, Bootstrap
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

RECORD = Record("recipe:team", inputs={"lock": "1"}, made_from={"base": "2"}, layers=("ctk-layer-1",))


@pytest.fixture
def team(here: Path) -> Path:
    """A layered image of ctk's, and recipes, a definition and a flat image beside it."""
    record = Part(0x4006, RECORD.as_text().encode(), name="ctk.json")
    (here / "defs/over.toml").write_text('base = "../team.sif"\n')
    (here / "own.def").write_text("Bootstrap: docker\nFrom: a\nStage: a\nBootstrap: localimage\nFrom: team.sif\n")
    write_sif(here / "flat.sif", [system(b"hsqs" * 100)])
    return write_sif(here / "team.sif", [system(b"hsqs" * 100), overlay(b"hsqs" * 100), record])


def local(path: Path) -> Base:
    return Base("x", Bootstrap.LOCALIMAGE, str(path))


def test_only_a_sif_with_overlays_of_its_group_is_layered(here: Path, team: Path) -> None:
    assert is_layered(team)
    assert not any(is_layered(here / name) for name in ("flat.sif", "base.sif", "sb", "none.sif", "k.def"))
    assert layered_base(local(team)) == team
    assert layered_base(Base("x", Bootstrap.DOCKER, str(team))) is None
    assert layered_base(None) is None


def test_layered_base_is_refused_with_the_command_that_merges_it(here: Path, team: Path) -> None:
    with pytest.raises(WrongInput, match=r"own\.def starts from .*team\.sif, which is layered") as error:
        refuse_layered(local(team), "own.def")
    assert merge_command(team) in (error.value.fix or "")
    refuse_layered(local(here / "flat.sif"), "own.def")
    assert merge_command(team.with_name("a b.sif")).endswith("a b.sif' --flat -o 'a b-flat.sif'")


@pytest.mark.parametrize("preview", [True, False])
def test_own_definition_over_a_layered_image_is_refused(here: Path, team: Path, preview: bool) -> None:
    with pytest.raises(WrongInput, match=f"own.def starts from {team}"):
        resolve(request("own.def"), context(here, preview=preview))


def test_definition_over_the_flat_base_is_the_same_but_for_its_header(here: Path, team: Path) -> None:
    recipe = Catalogue(here / "defs", here / "shipped").recipe("over")
    text = define(recipe).text
    flat = over_flat_base(text, recipe.base)
    before, after = parts_of(text), parts_of(flat)
    assert dict(after.header) == {"bootstrap": "localimage", "from": "team-flat.sif"}
    assert (after.environment, after.labels) == (before.environment, before.labels)
    assert "# Made of a layered image: ctk build team.sif --flat -o team-flat.sif" in flat
    assert str(team.parent) not in after.text
    with pytest.raises(ValueError, match="does not start from"):
        over_flat_base(flat, recipe.base)


@pytest.mark.usefixtures("team")
def test_flat_image_over_a_layered_base_merges_it_first(here: Path) -> None:
    plan = resolve(request("over"), context(here, preview=True))
    workspace = Workspace(here / "beside", here / "scratch")
    steps = steps_of(plan, context(here, preview=True), workspace)
    merge = next(step for step in steps if isinstance(step, MergeLayers))
    build = next(step for step in steps if isinstance(step, BuildImage))
    assert steps.index(merge) < steps.index(build)
    assert (merge.image, merge.is_target) == (here / "scratch/team-flat.sif", False)
    assert build.directory == here / "scratch"
    script = "\n".join(build_commands(plan, context(here, preview=True)))
    assert "From: team-flat.sif" in script
    assert "team.sif --flat -o " in script


@pytest.mark.usefixtures("team")
def test_image_is_a_target_only_to_merge_its_layers(here: Path) -> None:
    for text in ("team.sif", "./team.sif", str(here / "team.sif")):
        with pytest.raises(WrongInput, match="is an image") as error:
            parse_target(text)
        assert f"ctk build {text} --flat -o NEW.sif" in (error.value.fix or "")
        target = parse_target(text, flat=True)
        assert (target.kind, target.name) == (TargetKind.IMAGE, "team-flat")
    assert parse_target("none.sif", flat=True).kind is TargetKind.RECIPE  # the catalogue says that there is none


@pytest.mark.usefixtures("team")
def test_merged_image_remembers_what_the_layered_one_does(here: Path) -> None:
    plan = resolve(request("team.sif", flat=True), context(here, preview=False))
    assert plan.request.output == here / "team-flat.sif"
    assert (plan.record.target, plan.record.made_from) == (RECORD.target, RECORD.made_from)
    assert (plan.record.layers, plan.record.inputs) == ((), {})
    steps = steps_of(plan, context(here, preview=False), Workspace(here / "beside", here / "scratch"))
    assert steps[0] == MergeLayers(
        here / "team.sif", here / "beside/image", here / "scratch", plan.request.options, is_target=True
    )
    assert not any(isinstance(step, BuildImage) for step in steps)
    with pytest.raises(WrongInput, match="no layers to merge"):
        resolve(request("flat.sif", flat=True), context(here, preview=False))
    with pytest.raises(WrongInput, match="--dry-run"):
        resolve(request("team.sif", flat=True), context(here, preview=True))
    with pytest.raises(WrongInput, match="--sandbox"):
        request("team.sif", flat=True, sandbox=True)


@pytest.mark.usefixtures("team")
def test_merged_image_replaces_only_one_of_the_same_target(here: Path) -> None:
    for target in ("recipe:other", "recipe:team"):
        record = Part(0x4006, Record(target).as_text().encode(), name="ctk.json")
        write_sif(here / "team-flat.sif", [system(b"hsqs" * 100), record])
        if target == "recipe:team":
            assert request("team.sif", flat=True).output == here / "team-flat.sif"
        else:
            with pytest.raises(WrongInput, match="another target"):
                request("team.sif", flat=True)
