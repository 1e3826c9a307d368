"""Builds without a network: what is refused, and what the message names."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, keep_base, request
from tests.builds.small_store import keep, lock_of, package
from tests.pins.locks import COMMIT
from toolkit.builds.bases import registry_base
from toolkit.builds.context import Listener
from toolkit.builds.offline import KeptBase, missing_base, missing_files, require_fetched, require_step
from toolkit.builds.tags import ask_digest
from toolkit.definitions.definition import define
from toolkit.pins.bases import registry
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.support.errors import MissingOnHost, WrongInput

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = f"sha256:{hashlib.sha256(b'a base').hexdigest()}"
HUB = Base("hub", Bootstrap.DOCKER, "hub.example/a/b:1", DIGEST, python="3.11")


def test_missing_lock_and_base_are_named_with_the_command(here: Path) -> None:
    (here / "shipped/bases.toml").write_text(
        f'[hub]\nbootstrap = "docker"\nreference = "a/b:1"\ndigest = "{DIGEST}"\npython = "3.11"\n'
    )
    (here / "defs/mine.toml").write_text('base = "hub"\npackages = ["six"]\n')
    offline = replace(context(here, preview=False), offline=True)
    with pytest.raises(MissingOnHost, match=rf"2 inputs .*mine\.lock\.toml.*a/b@{DIGEST}") as caught:
        require_fetched(request("mine"), offline)
    assert (caught.value.code, caught.value.fix) == (
        "not-fetched",
        "On a host with a network and the same work area: ctk fetch mine",
    )
    require_fetched(request("mine"), context(here, preview=False))


def test_kept_base_is_not_missing(here: Path) -> None:
    made = context(here, preview=False)
    recipe = Recipe("mine", here / "defs/mine.toml", HUB)
    assert missing_base(recipe, made) == f"the base hub (hub.example/a/b@{DIGEST})"
    keep_base(here, DIGEST)
    assert missing_base(recipe, made) is None


def test_step_that_has_to_run_names_its_files(here: Path) -> None:
    offline = replace(context(here, preview=False), offline=True)
    lock = lock_of(package("one", b"one"), package("two", b"two"), COMMIT)
    recipe = Recipe("mine", here / "defs/mine.toml", HUB, apt=("git", "jq"))
    keep(offline.store, b"one", "one-1-py3-none-any.whl")
    assert missing_files(lock, offline.store) == ["two-1-py3-none-any.whl"]
    with pytest.raises(MissingOnHost, match=r"the Debian packages git jq, mine \(git\+.*\), two-1-py3-none-any\.whl$"):
        require_step(recipe, lock, offline, packages=True, apt=True)
    with pytest.raises(MissingOnHost, match="1 input not on this host: the Debian packages git jq") as caught:
        require_step(recipe, lock, offline, packages=False, apt=True)
    assert "only a layered build without --force" in (caught.value.fix or "")
    with pytest.raises(MissingOnHost, match=r"1 input not on this host: two-1-py3-none-any\.whl$") as caught:
        require_step(recipe, lock_of(package("two", b"two")), offline, packages=True, apt=False)
    assert caught.value.fix == "On a host with a network and the same work area: ctk fetch mine"
    require_step(recipe, lock, offline, packages=False, apt=False)
    require_step(recipe, lock, context(here, preview=False), packages=True, apt=True)


def test_what_the_runtime_itself_would_pull_is_refused(here: Path) -> None:
    offline = replace(context(here, preview=False), offline=True)
    with pytest.raises(WrongInput, match=r"k\.def starts from x, which --offline cannot pull"):
        require_fetched(request("k.def"), offline)


def test_reference_that_was_pulled_here_needs_no_network(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offline = replace(context(here, preview=False), offline=True)
    monkeypatch.setattr(registry, "fetch_digest", lambda _: DIGEST)
    asked = request("docker://hub.example/a/b:1")
    ask_digest("hub.example/a/b:1", offline.locks.cache, None)
    with pytest.raises(MissingOnHost, match=r"the image of docker://hub\.example/a/b:1 is not on this host") as caught:
        require_fetched(asked, offline)
    assert (caught.value.code, caught.value.fix) == (
        "not-fetched",
        "On a host with a network and the same work area: ctk build docker://hub.example/a/b:1",
    )
    kept = keep_base(here, DIGEST)
    require_fetched(asked, offline)
    assert asked.base is not None
    base, present = registry_base(asked, asked.base, offline, Listener())
    assert (base.digest, present.image) == (DIGEST, kept)


def test_sandbox_needs_no_network(here: Path) -> None:
    require_fetched(request("sb/", output=here / "x.sif"), replace(context(here, preview=False), offline=True))


def test_flat_build_starts_from_the_kept_image(here: Path) -> None:
    text = define(Recipe("mine", here / "defs/mine.toml", HUB)).text
    kept = KeptBase(HUB, here / "image", here / "link/base.sif", here)
    made = kept.definition(text)
    assert "\nBootstrap: localimage\nFrom: base.sif\n" in made
    assert "docker\n" not in made
    assert str(here) not in made
    with pytest.raises(ValueError, match="does not start from"):
        kept.definition("Bootstrap: docker\nFrom: other\n")
    suite = replace(HUB, bootstrap=Bootstrap.DEBOOTSTRAP, reference="bookworm", digest=None, apt=("python3",))
    text = define(Recipe("mine", here / "defs/mine.toml", suite), mirror="http://m/debian").text
    made = KeptBase(suite, here / "image", here / "link/base.sif", here, "http://m/debian").definition(text)
    assert "\nBootstrap: localimage\nFrom: base.sif\n" in made
    assert "\n    ctk.base bookworm http://m/debian\n" in made
    assert "MirrorURL" not in made
    (here / "link").mkdir()
    kept.run()
    assert kept.link.readlink() == here / "image"
