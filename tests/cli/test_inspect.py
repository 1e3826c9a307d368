"""`ctk inspect --recipe` and `--lock` as a user meets them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.inventory.making import system, write_sif
from toolkit.builds.record import Record, RecordedBase, read_record, record_beside, write_beside

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


KEYS = ("recipe", "lock", "target", "verdict", "name", "entry", "key", "layers")
SURROGATES = st.text(st.characters(categories=["Cs"]), min_size=1, max_size=1)


@pytest.mark.parametrize("options", [("--recipe",), ("--lock",), ("--recipe", "-o", "defs"), ("--json",), ()])
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(key=st.sampled_from(KEYS), lone=SURROGATES)
def test_text_that_is_not_unicode_is_refused(
    ctk: Ctk, image: Path, options: tuple[str, ...], key: str, lone: str
) -> None:
    record = Record("recipe:mine", RecordedBase("debian-12"), recipe=RECIPE, lock=LOCK)
    document: dict[str, Any] = {**record.as_document(), "inode": image.stat().st_ino}
    if key in ("name", "entry"):
        document["base"][key] = f"debian-12{lone}"
    elif key == "key":
        document["inputs"] = {f"six{lone}": "x"}
    else:
        document[key] = [lone] if key == "layers" else f"{document[key]}# {lone}"
    record_beside(image).write_text(json.dumps(document))
    refused = ctk("inspect", image, *options, status=2)
    assert "is damaged: its record has a text that is not valid Unicode" in refused.stdout + refused.stderr
    assert not (ctk.directory / "defs").exists()
    assert read_record(image) is None


@pytest.mark.parametrize("option", ["--recipe", "--lock"])
def test_text_that_controls_the_terminal_is_refused(ctk: Ctk, plain: Path, option: str) -> None:
    for mark in "\x9b\u202e":
        texts = {"recipe": f"{RECIPE}# {mark}\n", "lock": f"{LOCK}# {mark}\n"}
        write_beside(plain, Record("recipe:mine", RecordedBase("debian-12"), **texts))
        refused = ctk("inspect", plain, option, status=2)
        assert mark not in refused.stdout + refused.stderr
        assert "is damaged" in refused.stderr


def test_shipped_base_is_not_overridden_by_an_image(ctk: Ctk, plain: Path) -> None:
    entry = '[debian-12]\nbootstrap = "docker"\nreference = "evil.example/debian:12"\n'
    write_beside(plain, Record("recipe:mine", RecordedBase("debian-12", entry=entry), recipe=RECIPE, lock=LOCK))
    done = ctk("inspect", plain, "--recipe", "-o", "defs")
    assert "! the base debian-12 of the image is evil.example/debian:12; the one known here is" in done.stderr
    assert not (ctk.directory / "defs/bases.toml").exists()
    forced = ctk("inspect", plain, "--recipe", "-o", "defs", "--force")
    assert "All recipes of this directory now use that of the image" in forced.stderr
    assert "evil.example" in (ctk.directory / "defs/bases.toml").read_text()


def test_image_of_another_program_has_no_recipe(ctk: Ctk, plain: Path) -> None:
    assert "it was not built by ctk" in ctk("inspect", plain, "--recipe", status=2).stderr


@pytest.mark.parametrize("options", [(), ("--recipe",), ("--json",)])
def test_damaged_image_is_called_so(ctk: Ctk, options: tuple[str, ...]) -> None:
    image = write_sif(ctk.directory / "cut.sif", [system(bytes(8192))])
    image.write_bytes(image.read_bytes()[:-4096])
    refused = ctk("inspect", image.name, *options, status=2)
    assert "cut.sif is damaged: " in refused.stdout + refused.stderr
    assert "it was not built by ctk" not in refused.stderr
