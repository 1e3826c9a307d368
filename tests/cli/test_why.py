"""`ctk why` as a user types it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.pins.locks import ARM, SMALL, WHEEL
from toolkit.pins.lock.lockfile import write_lock
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_why_reads_the_only_lock(ctk: Ctk, directory: Path) -> None:
    assert "torch 2.5.1+cu124 is protected" in ctk("why", "torch").stdout
    found = json.loads(ctk("why", "timm", "small", "--json").stdout)
    assert found["schema"] == "ctk.why/1"
    assert ctk("why", "flask", status=1).stderr.endswith("ctk add small flask\n")
    (directory / "defs/small.toml").write_text('base = "debian-12"\npackages = ["flask"]\n')
    done = ctk("why", "flask", status=1)
    assert "`ctk lock small --arch x86_64` updates it" in done.stderr, "it was added after the lock was made"


def test_recipe_before_the_package_names_the_right_order(ctk: Ctk, directory: Path) -> None:
    assert (directory / "defs/small.lock.toml").is_file()
    refused = ctk("why", "small", "timm", status=2)
    assert "the package comes before the recipe" in refused.stderr
    assert refused.stderr.endswith("ctk why timm small\n")


def test_why_reads_the_lock_on_another_base(ctk: Ctk, directory: Path) -> None:
    arguments = ("why", "timm", "mine", "--base", "pytorch-2.6")
    done = ctk(*arguments, status=None)
    assert (done.status, done.stderr.splitlines()[-1]) == (2, "ctk lock mine --base pytorch-2.6")
    catalogue = Catalogue(directory / "defs", shipped("defs"))
    recipe = catalogue.recipe("mine", base=catalogue.bases()["pytorch-2.6"])
    path = Locks.of(catalogue, directory.parent / "area").path(recipe)
    path.parent.mkdir(parents=True)
    write_lock(SMALL, path)
    assert "timm 1.0.3 is added: timm ← the recipe." in ctk(*arguments).stdout
    assert not (directory / "defs/mine.lock.toml").exists()


def test_a_lock_that_was_edited_is_not_taken_for_good(ctk: Ctk, directory: Path) -> None:
    path = directory / "defs/small.lock.toml"
    path.write_text(path.read_text().replace("1.0.3", "1.0.4"))
    done = ctk("why", "timm", status=2)
    assert "edited by hand" in done.stderr


def test_why_reads_the_section_that_is_named_else_that_of_this_host(ctk: Ctk, directory: Path) -> None:
    assert "has no lock for aarch64" in ctk("why", "timm", "--arch", "arm64", status=2).stderr
    arm = replace(ARM, packages=(replace(WHEEL, version="1.0.9"),))
    write_lock(arm, directory / "defs/small.lock.toml")
    assert "timm 1.0.9 is added" in ctk("why", "timm", "--arch", "arm64").stdout
    assert ctk("why", "timm").stdout.startswith("In the lock for x86_64:\ntimm 1.0.3 is added")
    assert json.loads(ctk("why", "timm", "--arch", "arm64", "--json").stdout)["architecture"] == "aarch64"
    assert ctk("why", "timm", "none", "--arch", "arm64", status=2).stderr.endswith("ctk lock none --arch aarch64\n")
    (directory / "defs/small.lock.toml").unlink()
    write_lock(arm, directory / "defs/small.lock.toml")
    assert ctk("why", "timm").stdout.startswith("timm 1.0.9 is added"), "there is no other section"
