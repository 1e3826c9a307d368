"""The guard around the installation of Debian packages: what apt changed is named as apt's, and nothing else fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pins.guard.test_payload import Image, a_lock, python_versions
from toolkit.pins.guard import log

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FIRST, DEBIAN = 0, 1  # the directories of pip and of Debian's packages, in the order in which Python searches them


@pytest.fixture(params=python_versions())
def image(tmp_path: Path, request: pytest.FixtureRequest) -> Image:
    """A base with a framework, at the moment before apt runs."""
    image = Image(tmp_path, request.param)
    image.searched = image.sites
    image.put("torch", "2.5.1+cu124")
    image.put("numpy", "1.26.4")
    assert image.guard("before-apt", a_lock())[0] == 0
    assert not (tmp_path / "guard/constraint.txt").exists()
    return image


def after_apt(image: Image) -> tuple[str, ...]:
    status, text = image.guard("after-apt", a_lock())
    found = log.differences(text.splitlines())
    assert status == (1 if found else 0), text
    assert ("Remove the Debian package from `apt`" in text) == bool(found)
    return found


def test_new_package_from_apt_is_part_of_the_later_snapshot(image: Image) -> None:
    image.put("six", "1.16", site=DEBIAN)
    assert after_apt(image) == ()
    assert (image.directory / "guard/constraint.txt").read_text().splitlines()[-1] == "torch==2.5.1+cu124"
    status, text = image.guard("after", a_lock())
    assert (status, "six" in text) == (0, False)


@pytest.mark.parametrize("searched", [True, False])
def test_copy_that_python_does_not_import_is_noted_and_allowed(image: Image, searched: bool) -> None:
    """python3-numpy and python3-torch beside those of pip, or of conda."""
    image.searched = image.sites if searched else image.sites[:1]
    image.put("numpy", "2.1.0", site=DEBIAN)
    image.put("torch", "1.13.1", site=DEBIAN)
    status, text = image.guard("after-apt", a_lock())
    assert status == 0, text
    assert f"numpy 2.1.0 in {image.sites[DEBIAN]}; Python does not import this copy" in text
    assert image.differences(a_lock()) == ()
    image.put("torch", "2.6.0", site=DEBIAN)
    assert len(image.differences(a_lock())) == 1, "a later copy is not apt's"


def test_copy_in_front_of_the_base_is_a_difference(image: Image) -> None:
    image.searched = image.sites[::-1]
    image.put("torch", "1.13.1", site=DEBIAN)
    [found] = after_apt(image)
    assert found == "torch: 2.5.1+cu124 -> 1.13.1 (by apt: a second copy in " + (
        f"{image.sites[DEBIAN]}; a Debian package installed it)"
    )


def test_other_version_from_apt_is_a_difference(image: Image) -> None:
    image.drop("torch", "2.5.1+cu124")
    image.put("torch", "2.6.0")
    assert after_apt(image) == ("torch: 2.5.1+cu124 -> 2.6.0 (by apt: a Debian package installed it)",)
    assert image.guard("failed", a_lock()) == (1, ""), "it was said once"


def test_version_outside_a_bound_is_a_difference(image: Image) -> None:
    image.drop("numpy", "1.26.4")
    image.put("numpy", "2.1.0")
    [found] = after_apt(image)
    assert found.startswith("numpy: 1.26.4 -> 2.1.0 (by apt: ")


def test_altered_and_removed_files_are_differences(image: Image) -> None:
    (image.sites[FIRST] / "torch/__init__.py").write_text("cuda = None\n")
    [found] = after_apt(image)
    assert "altered files (by apt: first of them " in found
    image.drop("torch", "2.5.1+cu124")
    assert after_apt(image) == ("torch: 2.5.1+cu124 -> nothing (by apt: a Debian package removed it)",)


def test_module_in_front_of_the_base_is_a_difference(image: Image) -> None:
    image.put("other", "1", site=DEBIAN)
    (image.sites[DEBIAN] / "torch.py").touch()
    assert after_apt(image) == ()
    image.searched = image.sites[::-1]
    [found] = after_apt(image)
    assert found.endswith("(by apt: it would be imported in place of the base's own)")


def test_base_of_the_lock_is_compared_before_apt(tmp_path: Path) -> None:
    image = Image(tmp_path, python_versions()[0])
    image.put("torch", "2.4.0")
    status, text = image.guard("before-apt", a_lock())
    [found] = log.differences(text.splitlines())
    assert (status, found) == (1, "torch: the lock was made for 2.5.1+cu124, the base has 2.4.0")
