"""A trial without a build: which base it needs, and what a user does if it is not here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, keep_base
from tests.inventory.making import fill, overlay, squash, system, write_sif
from tests.pins.locks import SMALL
from toolkit.builds.context import Listener
from toolkit.builds.trying import base_here, require_packages, try_recipe
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.runtime.engine import Runtime
from toolkit.support.errors import MissingOnHost, WrongInput

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = f"sha256:{'a1' * 32}"


def recipe(here: Path, base: Base) -> Recipe:
    return Recipe("mine", here / "defs/mine.toml", base)


@pytest.mark.parametrize(
    ("base", "fix"),
    [
        (
            Base("hub", Bootstrap.DOCKER, "a/b:1", DIGEST),
            f"ctk build docker://a/b@{DIGEST} -o base.sif pulls it, then: ctk try mine --base base.sif",
        ),
        (
            Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm"),
            "ctk new plain --base debian-12 && ctk build plain -o base.sif builds an image of it, then: "
            "ctk try mine --base base.sif",
        ),
    ],
)
def test_a_base_that_is_not_here_is_refused_with_the_command_that_brings_it(here: Path, base: Base, fix: str) -> None:
    preview = context(here, preview=True)
    own = recipe(here, base)
    for asked, advice in (
        (replace(own, rebased=True), fix),
        (own, "ctk fetch mine keeps it on this host, then: ctk try mine"),
    ):
        with pytest.raises(MissingOnHost) as caught:
            base_here(asked, preview.locks, preview.area)
        assert (caught.value.code, caught.value.fix) == ("base-not-here", advice)


def test_a_base_of_one_s_own_or_that_a_build_brought_is_here(here: Path) -> None:
    made = context(here, preview=True)
    own = Base("base.sif", Bootstrap.LOCALIMAGE, str(here / "base.sif"))
    assert base_here(recipe(here, own), made.locks, made.area) == (here / "base.sif", None)
    kept = keep_base(here, DIGEST)
    pulled = Base("hub", Bootstrap.DOCKER, "a/b:1", DIGEST)
    assert base_here(recipe(here, pulled), made.locks, made.area) == (kept, DIGEST)


def test_trial_over_a_base_whose_layer_is_not_mounted_names_the_layer_whatever_the_shell_sets(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "ctk-layer-" + "a" * 32
    content = squash(fill(here / "root", {"tmp/": ""}), here / "root.sqfs").read_bytes()
    image = write_sif(here / "base.sif", [system(content), replace(overlay(content), name=name)])
    program = here / "apptainer"  # ends with the check in the host's shell, where the file of the layer is missing
    program.write_text(
        '#!/bin/sh\n[ -z "$APPTAINER_COMPAT" ] || exit 255\nwhile [ "$1" != -c ]; do shift; done; exec sh "$@"\n'
    )
    program.chmod(0o755)
    made = context(here, preview=True)
    monkeypatch.setenv("APPTAINER_COMPAT", "1")  # with it, the runtime takes no writable overlay
    made = replace(made, runtime=Runtime(program, "apptainer", (1, 4, 5)))
    monkeypatch.setattr("toolkit.builds.trying.trial_script", lambda _recipe, _lock: "exit 0\n")
    own = recipe(here, Base("base.sif", Bootstrap.LOCALIMAGE, str(image)))
    with pytest.raises(MissingOnHost, match=f"{name} of {image} is not mounted") as caught:
        try_recipe(own, SMALL, image, made, Listener())
    assert caught.value.code == "layer-not-mounted"


def test_a_recipe_without_packages_has_nothing_to_try(here: Path) -> None:
    with pytest.raises(WrongInput, match="lists no packages") as caught:
        require_packages(recipe(here, Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm")))
    assert caught.value.code == "nothing-to-try"
