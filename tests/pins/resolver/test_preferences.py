"""Versions that a lock should have: of a list and of earlier locks, over an index of our own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.locks import SHA, SMALL
from tests.pins.python_targets import TORCH, distribution, target
from tests.pins.small_index import Listed, serve_pages
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.lock.changes import compare_locks, list_rows
from toolkit.pins.lock.model import EARLIER, PREFERRED, Displaced, LockedPackage
from toolkit.pins.lock.upgrade import FULL_UPGRADE, NO_UPGRADE, Upgrade
from toolkit.pins.locking import is_current, make_lock
from toolkit.pins.resolver.preferences import listed_pins, wanted_versions
from toolkit.pins.why import why
from toolkit.recipes.model import Base, Recipe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.lock.model import Lock

PLAIN = target(distribution("pip", "24.2"), python="3.11.2")
OTHER = "cp39-cp39-manylinux_2_17_x86_64.whl"
FILES = [
    *(Listed(f"numpy-{version}-py3-none-any.whl") for version in ("1.24.3", "1.26.4", "2.1.2", "2.4.0")),
    Listed("pandas-1.5.3-py3-none-any.whl", ("numpy>=1.20",)),
    Listed("pandas-2.0.2-py3-none-any.whl", ("numpy>=1.21", "pytz")),
    Listed("pandas-3.0.0-py3-none-any.whl", ("numpy>=1.26",)),
    Listed("pytz-2023.3-py3-none-any.whl"),
    Listed("scipy-1.10.1-py3-none-any.whl", ("numpy<1.27",)),
    Listed("scipy-1.17.0-py3-none-any.whl", ("numpy>=1.26",)),
    Listed(f"learn-1.0.2-{OTHER}", ("numpy",)),
    Listed("learn-1.0.2.tar.gz", ("numpy",)),
    Listed(f"learn-1.1.0-{OTHER}", ("numpy",)),
    Listed("learn-1.3.0-py3-none-any.whl", ("numpy",)),
    Listed("learn-1.3.1-py3-none-any.whl", ("numpy",)),
    Listed("learn-1.5.0-py3-none-any.whl", ("numpy",)),
    Listed("learn-2.0.0-py3-none-any.whl", ("numpy",)),
    Listed("old-1.0-py3-none-any.whl", python="<3.11"),
    Listed("old-1.1-py3-none-any.whl"),
    Listed("gone-1.1-py3-none-any.whl"),
    Listed("pulled-1.0-py3-none-any.whl", yanked=True),
    Listed("pulled-1.1-py3-none-any.whl"),
    Listed("holder-1.0-py3-none-any.whl", ("numpy<2",)),
    Listed("tighter-1.0-py3-none-any.whl", ("numpy<1.25",)),
    Listed("newer-1.0-py3-none-any.whl", ("numpy>=2.2",)),
    Listed("speech-0.8-py3-none-any.whl"),
    Listed("speech-2025-py3-none-any.whl", ("pitch>=0.3",)),
    Listed("pitch-0.3-cp312-cp312-manylinux_2_17_x86_64.whl"),
    Listed("pitch-0.3.tar.gz"),
    Listed("dated-1.0-py3-none-any.whl", uploaded="2020-05-01T00:00:00Z"),
    Listed("dated-2.0-py3-none-any.whl", uploaded="2024-05-01T00:00:00Z"),
    Listed("setuptools-80.0-py3-none-any.whl"),
    Listed("wheel-0.45-py3-none-any.whl"),
]


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uv]:
    with serve_pages(FILES) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield open_uv(tmp_path_factory.mktemp("area"))


def a_recipe(*packages: str, prefer: tuple[str, ...] = ()) -> Recipe:
    return Recipe("x", Path("x.toml"), Base("base", "localimage", "/base.sif"), packages=packages, prefer=prefer)


def lock(
    uv: Uv,
    *packages: str,
    prefer: tuple[str, ...] = (),
    base: PythonTarget = PLAIN,
    earlier: Lock | None = None,
    upgrade: Upgrade = NO_UPGRADE,
    day: str | None = None,
) -> Lock:
    asked = a_recipe(*packages, prefer=prefer)
    facts = BaseFacts(asked.base, base, "sha256:0")
    return make_lock(uv, asked, facts, exclude_newer=day, earlier=earlier, upgrade=upgrade)


def reasons(made: Lock) -> dict[str, str]:
    return {name: because for name, _, _, because in list_rows(made)}


@pytest.mark.index
def test_lock_has_versions_of_list_where_it_can_and_says_why_not(uv: Uv) -> None:
    listed = (
        *("pandas==2.0.2", "numpy==1.24.3", "scipy==1.10.1", "learn==1.0.2", "old==1.0", "gone==1.0", "pulled==1.0"),
        *("unused==3", "pytz==2023.3 ; python_version < '3'", "pytz==2023.3 ; python_version > '3'"),
    )
    made = lock(uv, "pandas", "scipy", "learn", "old", "gone", "pulled", prefer=listed)
    assert made.versions == {
        "pandas": "2.0.2",
        "numpy": "1.24.3",
        "scipy": "1.10.1",
        "pytz": "2023.3",
        "pulled": "1.0",
        "learn": "1.3.1",
        "old": "1.1",
        "gone": "1.1",
    }
    assert reasons(made) == {
        "learn": "it has no wheel for Python 3.11 on x86_64",
        "old": "it requires Python <3.11; the base has Python 3.11.2",
        "gone": "no index has this release",
        "unused": "no package of the recipe requires it",
    }
    assert any("pulled 1.0 was yanked" in note for note in made.notes)
    held = {found.name: found.because for found in made.held}
    assert {held[name] for name in ("pandas", "numpy", "scipy")} == {PREFERRED}
    assert why(made, "learn")[-1] == (
        "It is not 1.0.2, which the recipe prefers: it has no wheel for Python 3.11 on x86_64."
    )


@pytest.mark.index
def test_base_and_other_packages_of_list_are_named_as_reasons(uv: Uv) -> None:
    listed = ("numpy==1.24.3", "torch==2.0.1", "scipy==1.10.1", "pip==20.0", "pandas==3.0.0")
    made = lock(uv, "pandas", "scipy", prefer=listed, base=TORCH)
    assert made.versions == {"pandas": "3.0.0", "scipy": "1.17.0"}
    assert reasons(made) == {
        "numpy": "the base has 2.1.2: PyTorch was compiled for this major version",
        "torch": "the base has 2.5.1+cu124 (protected: the base's PyTorch)",
        "scipy": "it requires numpy<1.27; the base has 2.1.2: PyTorch was compiled for this major version",
        "pip": "the base has it, and no package of the recipe requires another version",
    }
    inconsistent = lock(uv, "pandas", "scipy", prefer=("pandas==3.0.0", "numpy==1.24.3", "scipy==1.10.1"))
    assert inconsistent.versions == {"pandas": "3.0.0", "numpy": "1.26.4", "scipy": "1.10.1"}
    assert reasons(inconsistent) == {"numpy": "pandas 3.0.0 requires numpy>=1.26"}
    asked = lock(uv, "numpy>=2.2", prefer=("numpy==1.24.3",))
    assert reasons(asked) == {"numpy": "the recipe requires numpy>=2.2"}


@pytest.mark.index
def test_list_counts_once_and_again_if_it_changes(uv: Uv) -> None:
    first = lock(uv, "pandas", prefer=("numpy==1.24.3", "pandas==2.0.2"))
    upgraded = lock(uv, "pandas", prefer=("numpy==1.24.3", "pandas==2.0.2"), earlier=first, upgrade=FULL_UPGRADE)
    assert upgraded.versions == {"pandas": "3.0.0", "numpy": "2.4.0"}
    assert not upgraded.displaced
    later = lock(uv, "pandas", "gone", prefer=("numpy==1.24.3", "pandas==2.0.2"), earlier=upgraded)
    assert later.versions == {"pandas": "3.0.0", "numpy": "2.4.0", "gone": "1.1"}
    # What `ctk add -r` of another list does.
    other = lock(uv, "pandas", prefer=("numpy==1.26.4", "pandas==2.0.2"), earlier=later)
    assert other.versions == {"pandas": "3.0.0", "numpy": "1.26.4"}
    assert not is_current(other, a_recipe("pandas", prefer=("numpy==1.24.3",)), "sha256:0")


@pytest.mark.index
def test_remove_gives_back_what_add_displaced(uv: Uv) -> None:
    first = lock(uv, "pandas")
    assert first.versions == {"pandas": "3.0.0", "numpy": "2.4.0"}
    held = lock(uv, "pandas", "holder", earlier=first)
    assert held.versions == {"pandas": "3.0.0", "numpy": "1.26.4", "holder": "1.0"}
    assert compare_locks(first, held).lines == (
        "+ holder==1.0",
        "~ numpy 2.4.0 -> 1.26.4 (holder 1.0 requires numpy<2)",
    )
    assert [line for line in why(held, "numpy") if "2.4.0" in line] == [
        "It is not 2.4.0, which it was before: holder 1.0 requires numpy<2."
    ]
    tight = lock(uv, "pandas<3", "holder", "tighter", earlier=held)
    assert tight.versions["numpy"] == "1.24.3"
    loose = lock(uv, "pandas<3", "holder", earlier=tight)
    assert loose.versions["numpy"] == "1.26.4"
    assert lock(uv, "pandas", earlier=loose).versions["numpy"] == "2.4.0"
    listed = ("numpy==1.24.3", "pandas==2.0.2")
    raised = lock(uv, "pandas", "newer", prefer=listed)
    assert raised.versions["numpy"] == "2.4.0"
    assert lock(uv, "pandas", prefer=listed, earlier=raised).versions["numpy"] == "1.24.3"


@pytest.mark.index
def test_version_that_only_a_removed_requirement_named_is_not_wanted(uv: Uv) -> None:
    first = lock(uv, "pandas<3", "learn")
    exact = lock(uv, "pandas<3", "learn==1.5.0", earlier=first)
    again = lock(uv, "pandas<3", "learn", earlier=exact)
    assert (first.versions["learn"], exact.versions["learn"], again.versions["learn"]) == ("2.0.0", "1.5.0", "2.0.0")
    assert again.displaced == ()


@pytest.mark.index
def test_what_a_removed_package_held_back_from_the_beginning_is_named(uv: Uv) -> None:
    first = lock(uv, "pandas", "holder")
    now = lock(uv, "pandas", earlier=first)
    assert now.versions["numpy"] == "1.26.4"
    assert [found.because for found in now.held] == [EARLIER]
    assert compare_locks(first, now).released == (("numpy", "2.4.0"),)
    assert compare_locks(now, lock(uv, "pandas", "gone", earlier=now)).released == ()


@pytest.mark.index
def test_versions_of_the_earlier_lock_are_not_asked_for_where_they_are_too_new(uv: Uv) -> None:
    first = lock(uv, "dated")
    assert first.versions == {"dated": "2.0"}
    cut = lock(uv, "dated", earlier=first, day="2021-03-07")
    assert (cut.versions, cut.displaced) == ({"dated": "1.0"}, ())


def test_pins_of_a_list_are_those_for_the_python() -> None:
    lines = ("NumPy==1.21.6 ; python_version < '3.8'", "numpy==1.26.4 ; python_version >= '3.8'", "a.b==1+cu118")
    assert listed_pins(lines, PLAIN) == ("a-b==1+cu118", "numpy==1.26.4")


def test_most_wanted_version_comes_first() -> None:
    numpy = LockedPackage("numpy", "1.26", "n.whl", SHA)
    by_address = LockedPackage("mine", "1", None, url="git+https://x")
    earlier = replace(
        SMALL,
        packages=(numpy, by_address),
        preferred=("numpy==1.24", "six==1.16"),
        displaced=(Displaced("numpy", ("2.4", "1.24"), "x"), Displaced("tqdm", ("4",), "x")),
    )
    assert wanted_versions(("numpy==1.24", "six==1.16"), None, NO_UPGRADE, ()) == {"numpy": ("1.24",), "six": ("1.16",)}
    assert wanted_versions(("numpy==1.24", "six==1.16"), earlier, NO_UPGRADE, ()) == {
        "numpy": ("2.4", "1.24", "1.26"),
        "six": ("1.16",),
        "tqdm": ("4",),
    }
    assert wanted_versions(("numpy==1.25",), earlier, NO_UPGRADE, ())["numpy"] == ("1.25", "2.4", "1.26")
    assert wanted_versions(("numpy==1.25",), earlier, Upgrade(frozenset({"numpy"})), ()) == {"tqdm": ("4",)}
    assert wanted_versions(("numpy==1.25",), earlier, FULL_UPGRADE, ()) == {}


@pytest.mark.parametrize("prefer", [(), ("pandas==2.0.2",)])
def test_newest_release_that_fits_is_not_given_up_for_a_wheel(uv: Uv, prefer: tuple[str, ...]) -> None:
    """espnet 202511 needs a pyworld without a wheel; espnet 0.8.0 of 2020 does not."""
    made = lock(uv, "speech", "pandas", prefer=prefer)
    assert made.versions["speech"] == "2025"
    assert [package.name for package in made.packages if not package.is_wheel] == ["pitch"]
