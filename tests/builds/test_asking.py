"""What is refused before any work starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builds.asked import request, sandbox_of
from tests.pins.bases.foreign import FOREIGN
from toolkit.builds.record import mark_changed, record_beside
from toolkit.support.errors import WrongInput


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("k.def", {"base": "base.sif"}, "--base applies only to recipes; k.def is not one"),
        ("sb/", {"base": "base.sif"}, "--base applies only to recipes"),
        ("none", {}, 'there is no recipe "none"'),
        ("mine", {"base": "none.sif"}, "/none.sif"),
        ("mine", {"output": Path("missing/x.sif")}, "there is no directory"),
        ("mine", {"output": Path("directory")}, "is a directory"),
        ("mine", {"output": Path("a\nb.sif")}, "control character"),
        ("mine", {"output": Path("base.sif")}, "exists and was not built by ctk"),
        ("mine", {"output": Path("directory"), "sandbox": True}, "is a directory that contains other files"),
        (
            "mine",
            {"output": Path("directory"), "sandbox": True, "force": True},
            "is a directory that contains other files",
        ),
        ("mine", {"output": Path(), "sandbox": True, "force": True}, "is a directory that contains other files"),
        ("mine", {"output": Path("sb"), "sandbox": True}, "exists and was not built by ctk"),
        ("mine", {"output": Path("/"), "sandbox": True, "force": True}, "/ cannot be replaced"),
        ("sb/", {"output": Path("sb"), "sandbox": True, "force": True}, "is inside the sandbox"),
        ("sb/", {"output": Path("sb/out.sif"), "force": True}, "is inside the sandbox"),
    ],
)
def test_what_is_refused_before_work_starts(here: Path, target: str, more: dict[str, object], message: str) -> None:
    before = sorted(here.rglob("*"))
    with pytest.raises(WrongInput) as caught:
        request(target, **more)
    assert message in caught.value.message
    assert sorted(here.rglob("*")) == before


def test_what_ctk_made_for_the_same_target_may_be_replaced(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    assert request("mine", output=made, sandbox=True).output == made
    with pytest.raises(WrongInput, match=r"was built from another target \(recipe:mine\)"):
        request("sb/", output=made, sandbox=True)
    assert request("sb/", output=made, sandbox=True, force=True).output == made


def test_what_was_changed_in_a_sandbox_is_not_replaced_unasked(here: Path) -> None:
    made = sandbox_of(here, "recipe:mine")
    mark_changed(made)
    with pytest.raises(WrongInput, match="was opened with `ctk shell`"):
        request("mine", output=made, sandbox=True)
    assert request("mine", output=made, sandbox=True, force=True).output == made
    mark_changed(here / "sb")
    assert not record_beside(here / "sb").exists(), "a sandbox of somebody else's gets no record"


def test_a_recipe_for_other_machines_is_not_built_here(here: Path) -> None:
    with (here / "defs/mine.toml").open("a") as file:
        file.write(f'[target]\narch = "{FOREIGN}"\n')
    with pytest.raises(WrongInput, match=f"arch is {FOREIGN}, and this host is") as caught:
        request("mine")
    assert caught.value.code == "wrong-architecture"
