"""Releases that install over a base and do not work there are held back, over an index of our own."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pins.python_targets import TORCH, distribution, target
from tests.pins.small_index import serve_index
from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.lock.protected import protect
from toolkit.pins.locking import make_lock
from toolkit.pins.resolver import newest, working
from toolkit.pins.resolver.aliases import resolve_variants
from toolkit.pins.resolver.newest import newest_that_fits, resolve_newest
from toolkit.pins.resolver.resolve import Request, Resolution, resolve
from toolkit.pins.resolver.undeclared import UndeclaredBound
from toolkit.pins.resolver.working import nearest_fitting, resolve_working
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.lock.model import Lock

# Almost all of them ask a server on loopback.
pytestmark = pytest.mark.index

NEW = 'torch>=2.6; extra == "torch"'
OLD = 'torch>=2.0; extra == "torch"'
PACKAGES = {
    "former": {**{f"4.{minor}": [OLD] for minor in range(12)}, **{f"5.{minor}": [NEW] for minor in range(9)}},
    "user": {"1.0": ["former"], "2.0": ["former>=5.0"]},
    "fresh": {"1.0": [NEW], "1.1": [NEW]},
    "arrow": {"20.0": [], "21.0": [], "22.0": []},
    "speech": {"0.8": [], "1.0": [], "2.0": ["tongue<2"], "3.0": ["tongue<2"], "4.0": ["tongue<1"]},
    "tongue": {"1.0": [], "2.0": []},
    "view": {"1.0": [], "2.0": ["opencv-python", "opencv-python-headless"]},
    "opencv-python": {"4.1": []},
    "opencv-python-headless": {"4.1": []},
}
ARROW = UndeclaredBound("arrow", "<22", ("numpy>=2",), "arrow 22 needs numpy 3", "made up", str(date(2026, 11, 21)))


@pytest.fixture(scope="module")
def _index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with serve_index(tmp_path_factory.mktemp("index"), PACKAGES) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory, _index: None) -> Uv:
    return open_uv(tmp_path_factory.mktemp("area"))


def lock(uv: Uv, *packages: str, earlier: Lock | None = None, skip: tuple[str, ...] = ()) -> Lock:
    base = Base("base", "localimage", "/base.sif")
    recipe = Recipe("x", Path("x.toml"), base, packages=packages, import_skip=skip)
    return make_lock(uv, recipe, BaseFacts(base, TORCH, "sha256:0"), earlier=earlier)


def versions(made: Lock | Resolution) -> dict[str, str]:
    return {package.name: package.version for package in made.packages}


def request(*packages: str, **more: object) -> Request:
    return Request(TORCH, packages, protect(TORCH, knowledge()), **more)  # type: ignore[arg-type]


@given(st.integers(0, 400), st.integers(0, 400))
def test_nearest_fitting_release_is_found_with_few_looks(count: int, first: int) -> None:
    looked: list[int] = []

    def refused(release: int) -> bool:
        looked.append(release)
        return release < first

    assert nearest_fitting(range(count), refused) == (first if first < count else None)
    assert len(looked) <= 2 * (count.bit_length() + 1)


def test_release_whose_extra_refuses_the_framework_is_held_back(uv: Uv) -> None:
    made = lock(uv, "former")
    assert versions(made) == {"former": "4.11"}
    (held,) = made.held
    assert (held.newest, held.because) == (
        "5.8",
        "newer former needs torch>=2.6, as its extra [torch] says; the base has 2.5.1+cu124",
    )
    again = lock(uv, "former", earlier=made)
    assert (again.packages, again.held) == (made.packages, made.held), "the reason stays the true one"


def test_skipped_import_of_what_is_not_in_the_recipe_is_noted(uv: Uv) -> None:
    (note,) = lock(uv, "user", skip=("former", "torch", "user")).notes
    assert note == (
        "[imports] skip lists former, which is neither a package of the recipe nor a framework of the base: remove it"
    )


def test_release_that_another_package_brings_is_held_back_too(uv: Uv) -> None:
    assert versions(resolve_working(uv, request("user"))[1]) == {"former": "4.11", "user": "1.0"}


def test_release_that_the_recipe_gives_by_its_address_is_taken(uv: Uv) -> None:
    address = f"{os.environ['UV_DEFAULT_INDEX']}/former/former-5.3-py3-none-any.whl"
    assert versions(resolve_working(uv, request(f"former @ {address}"))[1]) == {"former": "5.3"}


def test_wheel_whose_metadata_cannot_be_read_is_noted(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "read_requirements", lambda *_: None)
    _, resolution = resolve_working(uv, request("former"))
    assert versions(resolution) == {"former": "5.8"}
    assert resolution.notes[0].startswith("the metadata of former cannot be read")
    bare = target(distribution("numpy", "2.1.2"), distribution("pip", "24.2"))
    _, resolution = resolve_working(uv, replace(request("former"), target=bare, protected=protect(bare, knowledge())))
    assert resolution.notes == (), "there is no framework"


def test_explicit_request_is_refused_with_the_version_that_fits(uv: Uv) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(uv, "former>=5.3")
    assert caught.value.code == "requirements-conflict"
    assert "former>=5.3  (the recipe)" in caught.value.message
    assert "torch>=2.6, as its extra [torch] says; the base has 2.5.1+cu124" in caught.value.message
    assert caught.value.fix == "Another version fits: former==4.11. Or drop former from the recipe."


def test_package_whose_releases_are_all_refused_is_locked_with_a_note(uv: Uv) -> None:
    _, made = resolve_working(uv, request("fresh"))
    assert versions(made) == {"fresh": "1.1"}
    assert made.notes == (
        "fresh 1.1 needs torch>=2.6, as its extra [torch] says; the base has 2.5.1+cu124, "
        "and no older release with lower requirements was found",
    )


def test_index_that_lists_no_releases_is_asked_for_one_after_the_other(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "list_releases", lambda *_: ())
    monkeypatch.setattr(working, "_MAX_ROUNDS", 2)
    last, resolution = resolve_working(uv, request("former<5.2"))
    assert [bound.line for bound in last.learned if bound.name == "former"] == ["former<5.1", "former<5.0"]
    assert versions(resolution) == {"former": "4.11"}
    monkeypatch.setattr(working, "_MAX_ROUNDS", 1)
    _, resolution = resolve_working(uv, request("former<5.2"))
    assert resolution.notes[0].startswith("former may not work: newer former needs torch>=2.6")


def test_undeclared_bound_is_a_constraint_with_its_reason(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "undeclared_bounds", lambda: (ARROW,))
    made = lock(uv, "arrow")
    assert [(held.version, held.because) for held in made.held] == [("21.0", "arrow 22 needs numpy 3")]
    with pytest.raises(CheckFailed) as caught:
        lock(uv, "arrow==22.0")
    assert "arrow<22  (arrow 22 needs numpy 3)" in caught.value.message
    assert "Another version fits: arrow==21.0." in (caught.value.fix or "")


def test_package_that_the_user_exempts_is_not_held_back(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "undeclared_bounds", lambda: (ARROW,))
    _, resolution = resolve_working(uv, request("arrow", "former", unbound=frozenset({"arrow", "former"})))
    assert versions(resolution) == {"arrow": "22.0", "former": "5.8"}


def test_earlier_lock_that_holds_what_does_not_work_keeps_the_rest(uv: Uv) -> None:
    prefer = ("former==5.2", "arrow==20.0")
    _, resolution = resolve_working(uv, request("arrow", "former", prefer=prefer))
    assert versions(resolution) == {"arrow": "20.0", "former": "4.11"}


def lazy(uv: Uv, package: str, specifier: str) -> working.Resolver:
    """A resolver that settles for an old release, unless it is aimed at another."""

    def choose(asked: Request, fresh: bool) -> tuple[Request, Resolution]:
        old = tuple(f"{line}{specifier}" if line == package else line for line in asked.packages)
        return asked, resolve(uv, asked if asked.aims else replace(asked, packages=old), fresh=fresh)

    return choose


def test_newest_release_that_fits_is_taken_not_the_oldest_that_installs(uv: Uv) -> None:
    _, resolution = resolve_newest(uv, request("former"), resolver=lazy(uv, "former", "<4.3"))
    assert versions(resolution)["former"] == "4.11"
    _, resolution = resolve_newest(uv, request("speech"), resolver=lazy(uv, "speech", "<1"))
    assert versions(resolution) == {"speech": "3.0", "tongue": "1.0"}


def test_newest_release_does_not_make_another_of_the_recipe_older(uv: Uv) -> None:
    _, resolution = resolve_newest(uv, request("speech", "tongue"), resolver=lazy(uv, "speech", "<1"))
    assert versions(resolution) == {"speech": "1.0", "tongue": "2.0"}


def test_newest_release_that_would_overwrite_another_is_not_taken(uv: Uv) -> None:
    assert newest_that_fits(uv, request("view"), "view", {"view": "1.0"}, "2.0") == "2.0", "the resolver sees no harm"
    _, resolution = resolve_newest(uv, request("view"), resolver=lazy(uv, "view", "<2"))
    assert versions(resolution) == {"view": "1.0"}


def test_newest_release_of_which_one_variant_serves_all_is_taken(uv: Uv) -> None:
    def choose(asked: Request, fresh: bool) -> tuple[Request, Resolution]:
        if asked.aims:
            return resolve_variants(uv, asked, (), knowledge(), fresh=fresh)
        return lazy(uv, "view", "<2")(asked, fresh)

    _, resolution = resolve_newest(uv, request("view"), resolver=choose)
    assert versions(resolution) == {"opencv-python-headless": "4.1", "view": "2.0"}


@pytest.mark.parametrize("asked", [request("speech==0.8"), request("speech", prefer=("speech==0.8",))])
def test_settled_version_is_kept(uv: Uv, asked: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(newest, "newest_that_fits")
    assert versions(resolve_newest(uv, asked)[1]) == {"speech": "0.8"}
