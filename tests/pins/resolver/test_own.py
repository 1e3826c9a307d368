"""GPU frameworks that a lock adds itself stay as they are locked, over an index of our own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import distribution, target
from tests.pins.small_index import serve_index
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.guard.script import guard_document
from toolkit.pins.guard.trials import import_step
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.lock.lockfile import load_lock, write_lock
from toolkit.pins.lock.upgrade import FULL_UPGRADE, NO_UPGRADE, Upgrade
from toolkit.pins.locking import make_lock
from toolkit.pins.why import why
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.lock.model import Lock

pytestmark = pytest.mark.index

PLAIN = target(distribution("pip", "24.2"))
PACKAGES = {
    "jax": {"0.6.2": ["jaxlib==0.6.2"], "0.7.2": ["jaxlib==0.7.2"]},
    "jaxlib": {"0.6.2": [], "0.7.2": []},
    "flax": {"0.10": ["jax>=0.6"], "0.11": ["jax>=0.7"]},
    "older": {"1.0": ["jax<0.7"]},
    "torch": {"2.5.1": [], "2.6.0": []},
    "torchaudio": {"2.5.1": [], "2.6.0": [], "2.11.0": []},
}


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uv]:
    with serve_index(tmp_path_factory.mktemp("index"), PACKAGES) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield open_uv(tmp_path_factory.mktemp("area"))


def lock(uv: Uv, *packages: str, earlier: Lock | None = None, upgrade: Upgrade = NO_UPGRADE) -> Lock:
    base = Base("base", "localimage", "/base.sif")
    recipe = Recipe("mine", Path("mine.toml"), base, packages=packages)
    return make_lock(uv, recipe, BaseFacts(base, PLAIN, "sha256:0"), earlier=earlier, upgrade=upgrade)


def versions(made: Lock) -> dict[str, str]:
    return {package.name: package.version for package in made.packages}


def pins(made: Lock) -> dict[str, str]:
    return {pin.name: pin.version for pin in made.own.pins}


def test_what_a_lock_adds_of_a_framework_is_protected(uv: Uv, tmp_path: Path) -> None:
    made = lock(uv, "jax")
    assert pins(made) == {"jax": "0.7.2", "jaxlib": "0.7.2"}
    assert made.own.pins[0].why == "the lock's JAX"
    assert made.protected.pins == ()
    write_lock(made, tmp_path / "mine.lock.toml")
    assert load_lock(tmp_path / "mine.lock.toml", "x86_64") == made
    document = guard_document(made, import_step(made))
    assert [pin["name"] for pin in document["added"]["protected"]] == ["jax", "jaxlib"]
    assert "jax is protected like a framework of the base: only `ctk lock --upgrade` changes it." in why(made, "jax")
    assert lock(uv, "older", "jax<0.7").own.pins, "whatever asks for it"


def test_a_package_that_needs_another_version_of_it_is_refused(uv: Uv) -> None:
    made = lock(uv, "jax")
    with pytest.raises(CheckFailed) as refused:
        lock(uv, "jax", "older", earlier=made)
    assert "jax==0.7.2  (the lock's JAX, as it is locked)" in refused.value.message
    assert refused.value.fix is not None
    assert "`ctk lock mine --arch x86_64 --upgrade jax` lets it change" in refused.value.fix
    assert versions(lock(uv, "jax", "flax", earlier=made))["jax"] == "0.7.2"


@pytest.mark.parametrize("upgrade", [FULL_UPGRADE, Upgrade(frozenset({"jax"}))])
def test_an_upgrade_lets_it_change(uv: Uv, upgrade: Upgrade) -> None:
    made = lock(uv, "jax")
    assert versions(lock(uv, "jax", "older", earlier=made, upgrade=upgrade))["jax"] == "0.6.2"
    with pytest.raises(CheckFailed):
        lock(uv, "jax", "older", earlier=made, upgrade=Upgrade(frozenset({"pydot"})))


def test_another_version_in_the_recipe_lets_it_change(uv: Uv) -> None:
    made = lock(uv, "jax")
    assert pins(lock(uv, "jax==0.6.2", earlier=made)) == {"jax": "0.6.2", "jaxlib": "0.6.2"}
    assert versions(lock(uv, "torch", earlier=made)) == {"torch": "2.6.0"}, "one that is gone holds nothing"


def test_a_companion_fits_the_framework_that_the_lock_adds(uv: Uv) -> None:
    """torchaudio 2.11 declares no dependency at all: an index offers it for any PyTorch."""
    made = lock(uv, "torch==2.5.1", "torchaudio")
    assert versions(made) == {"torch": "2.5.1", "torchaudio": "2.5.1"}
    asked = lock(uv, "torch==2.5.1", "torchaudio==2.11.0")
    assert versions(asked)["torchaudio"] == "2.11.0"
    assert "torchaudio 2.11.0 may not work: PyTorch 2.5.1 needs torchaudio ==2.5.*" in asked.notes
