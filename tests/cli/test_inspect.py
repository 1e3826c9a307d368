"""`ctk inspect --recipe` and `--lock` as a user meets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.builds.record import Record, RecordedBase, write_beside

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk

RECIPE = 'base = "debian-12"\npackages = ["six"]\n\n[[files]]\nfrom = "a.csv"\nto = "/opt/"\n'
LOCK = 'schema = "ctk.lock/1"\nrecipe = "mine"\n'


@pytest.fixture
def plain(sandbox: Path) -> Path:
    (sandbox / ".singularity.d").mkdir()
    return sandbox


@pytest.fixture
def image(plain: Path) -> Path:
    write_beside(plain, Record("recipe:mine", RecordedBase("debian-12"), recipe=RECIPE, lock=LOCK))
    return plain


def test_recipe_and_lock_are_printed_as_they_are(ctk: Ctk, image: Path) -> None:
    assert ctk("inspect", image, "--recipe").stdout == RECIPE
    assert ctk("inspect", image, "--lock").stdout == LOCK


def test_recipe_and_lock_are_written_to_a_directory(ctk: Ctk, image: Path) -> None:
    done = ctk("inspect", image, "--recipe", "--lock", "-o", "defs")
    assert done.stdout == (
        "Wrote defs/mine.toml\nWrote defs/mine.lock.toml\n"
        "The image does not hold these files, which the recipe names. Put them there before you build:\n"
        "  defs/a.csv\n"
    )
    assert (ctk.directory / "defs/mine.toml").read_text() == RECIPE
    assert (ctk.directory / "defs/mine.lock.toml").read_text() == LOCK
    (ctk.directory / "defs/mine.toml").write_text('base = "debian-12"\n')
    refused = ctk("inspect", image, "--recipe", "-o", "defs", status=2)
    assert "mine.toml exists and has other content" in refused.stderr
    ctk("inspect", image, "--recipe", "-o", "defs", "--force")
    assert (ctk.directory / "defs/mine.toml").read_text() == RECIPE


def test_directory_with_another_name_is_none_of_a_project(ctk: Ctk, image: Path) -> None:
    done = ctk("inspect", image, "--lock", "-o", "old/one")
    assert "Wrote old/one/mine.lock.toml\n" in done.stdout
    assert "`ctk build` reads recipes from a directory called defs: rename old/one to build." in done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--recipe", "--lock"), "choose one of"),
        (("--recipe", "--json"), "choose one of"),
        (("--definition", "--lock", "-o", "x"), "choose one of"),
        (("-o", "x"), "--output and --force are for --recipe and --lock"),
        (("--recipe", "--force"), "--force applies only to --output"),
    ],
)
def test_options_that_contradict_are_refused(ctk: Ctk, image: Path, options: tuple[str, ...], words: str) -> None:
    assert words in ctk("inspect", image, *options, status=2).stderr


def test_image_of_another_program_has_no_recipe(ctk: Ctk, plain: Path) -> None:
    assert "it was not built by ctk" in ctk("inspect", plain, "--recipe", status=2).stderr
