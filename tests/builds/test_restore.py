"""A recipe and a lock out of an image: what is written, what is kept, and what a damaged image gives."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.builds.record import Record, RecordedBase
from toolkit.builds.restore import lock_text, recipe_text, restore
from toolkit.pins.bases.own_file import table_of
from toolkit.recipes.bases import bases_of
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import TomlFile, parse_toml

IMAGE = Path("x.sif")
RECIPE = 'base = "team"\npackages = ["six"]\n'
LOCK = 'schema = "ctk.lock/1"\nrecipe = "mine"\n'
ENTRY = '[team]\nbootstrap = "docker"\nreference = "h.example/team:1"\n'
FULL = Record("recipe:mine", RecordedBase("team", entry=ENTRY), recipe=RECIPE, lock=LOCK)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    (tmp_path / "shipped").mkdir()
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    return Catalogue(tmp_path / "again/defs", tmp_path / "shipped")


def give_back(catalogue: Catalogue, record: Record | None = FULL, *, force: bool = False) -> list[str]:
    done = restore(IMAGE, record, catalogue, recipe=True, lock=True, force=force)
    return [path.name for path in done.written]


def test_recipe_lock_and_an_unknown_base_are_written(catalogue: Catalogue) -> None:
    assert give_back(catalogue) == ["mine.toml", "mine.lock.toml", "bases.toml"]
    assert (catalogue.own / "mine.toml").read_text() == RECIPE == recipe_text(IMAGE, FULL)
    assert (catalogue.own / "mine.lock.toml").read_text() == LOCK == lock_text(IMAGE, FULL)
    assert catalogue.recipe("mine").base.reference == "h.example/team:1"
    assert give_back(catalogue) == ["mine.toml", "mine.lock.toml"]  # the same again


@pytest.mark.parametrize("description", ["", 'description = "ours"\nchecked = 2026-11-21\n'])
def test_base_that_is_known_here_is_not_written_again(catalogue: Catalogue, description: str) -> None:
    (catalogue.shipped / "bases.toml").write_text(ENTRY + description)
    assert give_back(catalogue) == ["mine.toml", "mine.lock.toml"]


@pytest.mark.parametrize(
    "other",
    [
        ENTRY.replace("team:1", "team:2"),
        f'{ENTRY}digest = "sha256:{hashlib.sha256(b"the other image").hexdigest()}"\n',
        f'{ENTRY}broken = "it does not start"\n',
    ],
)
def test_shipped_base_of_that_name_is_overridden_only_with_force(catalogue: Catalogue, other: str) -> None:
    (catalogue.shipped / "bases.toml").write_text(other)
    known = catalogue.bases()["team"]
    done = restore(IMAGE, FULL, catalogue, recipe=True, lock=True, force=False)
    assert [path.name for path in done.written] == ["mine.toml", "mine.lock.toml"]
    assert catalogue.recipe("mine").base == known
    [warning] = done.warnings
    assert warning.code == "base-overridden"
    assert "team of the image is h.example/team:1; the one known here is h.example/team:" in warning.message
    assert "--force" in (warning.fix or "")
    done = restore(IMAGE, FULL, catalogue, recipe=True, lock=True, force=True)
    assert done.written[-1].name == "bases.toml"
    assert "All recipes of this directory now use" in done.warnings[0].message
    assert table_of(catalogue.bases()["team"]) == table_of(bases_of(TomlFile(IMAGE, ENTRY, parse_toml(ENTRY)))["team"])


def test_own_base_of_that_name_is_replaced_only_with_force(catalogue: Catalogue) -> None:
    catalogue.own.mkdir(parents=True)
    (catalogue.own / "bases.toml").write_text(ENTRY.replace("team:1", "team:2"))
    with pytest.raises(WrongInput, match=r"bases\.toml exists and has another base team"):
        give_back(catalogue)
    give_back(catalogue, force=True)
    assert catalogue.recipe("mine").base.reference == "h.example/team:1"


@pytest.mark.parametrize("name", ["mine.toml", "mine.lock.toml"])
def test_file_of_the_user_is_kept_and_nothing_is_written(catalogue: Catalogue, name: str) -> None:
    catalogue.own.mkdir(parents=True)
    (catalogue.own / name).write_text("# my own\n")
    with pytest.raises(WrongInput, match=f"{name} exists and has other content") as caught:
        give_back(catalogue)
    assert caught.value.fix
    assert "--force" in caught.value.fix
    assert [(path.name, path.read_text()) for path in catalogue.own.iterdir()] == [(name, "# my own\n")]
    give_back(catalogue, force=True)
    assert "# my own" not in (catalogue.own / name).read_text()


DEBIAN = '[debian-12]\nbootstrap = "docker"\nreference = "evil.example/debian:12"\n'


@pytest.mark.parametrize("entry", [ENTRY + DEBIAN, DEBIAN + ENTRY, DEBIAN, "", f'{ENTRY}unknown = "x"\n', "team = 3\n"])
def test_entry_of_any_other_base_is_refused_and_nothing_is_written(catalogue: Catalogue, entry: str) -> None:
    record = replace(FULL, base=RecordedBase("team", entry=entry))
    for force in (False, True):
        with pytest.raises(WrongInput, match="is damaged: its") as caught:
            give_back(catalogue, record, force=force)
        assert caught.value.code == "corrupt-image"
    assert not catalogue.own.exists()


MARKS = st.sampled_from([*map(chr, range(0x80, 0xA0)), *"\u061c\u200e\u200f\u202a\u202d\u202e\u2066\u2069"])
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"], exclude_characters='"\\'))


@given(TEXTS, MARKS, TEXTS)
def test_text_that_hides_what_it_says_is_refused_and_other_text_is_kept(before: str, mark: str, after: str) -> None:
    for line in ("# {}\n", 'description = "{}"\n'):
        plain = RECIPE + line.format(f"{before} שלום مرحبا {after}")
        assert recipe_text(IMAGE, replace(FULL, recipe=plain)) == plain
        forged = replace(FULL, recipe=RECIPE + line.format(before + mark + after))
        forged = replace(forged, lock=forged.recipe)
        for text in (recipe_text, lock_text):
            with pytest.raises(WrongInput, match="bidirectional marks") as caught:
                text(IMAGE, forged)
            assert caught.value.code == "corrupt-image"


@pytest.mark.parametrize("mark", ["\u202e", "\x9b", "\\u202e"])
def test_base_that_hides_what_it_says_is_refused(catalogue: Catalogue, mark: str) -> None:
    record = replace(FULL, base=RecordedBase("team", entry=f'{ENTRY}broken = "a{mark}b"\n'))
    with pytest.raises(WrongInput, match="is damaged") as caught:
        give_back(catalogue, record)
    assert caught.value.code == "corrupt-image"
    assert not catalogue.own.exists()


def test_nothing_is_written_through_a_symlink(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.own.mkdir(parents=True)
    (catalogue.own / "mine.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongInput, match="symlink"):
        give_back(catalogue, force=True)
    assert not (tmp_path / "elsewhere").exists()


def test_files_that_the_image_does_not_hold_are_named(catalogue: Catalogue) -> None:
    files = "".join(f'[[files]]\nfrom = "{name}"\nto = "/opt"\n' for name in ("../src", "./a.csv", "./b.csv"))
    record = Record("recipe:mine", RecordedBase("team.sif"), recipe=f'base = "./team.sif"\n{files}')
    catalogue.own.mkdir(parents=True)
    (catalogue.own / "b.csv").touch()
    done = restore(IMAGE, record, catalogue, recipe=True, lock=False, force=False)
    assert done.missing == (catalogue.own.parent / "src", catalogue.own / "a.csv", catalogue.own / "team.sif")


def test_recipe_that_installs_nothing_has_no_lock(catalogue: Catalogue) -> None:
    record = Record("recipe:mine", RecordedBase("debian-12"), recipe='base = "debian-12"\n')
    assert give_back(catalogue, record) == ["mine.toml"]
    with pytest.raises(WrongInput, match="its recipe installs nothing"):
        restore(IMAGE, record, catalogue, recipe=False, lock=True, force=False)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, "it was not built by ctk"),
        (Record("definition:k.def#0"), "it was built from definition:k.def#0, which is not a recipe"),
        (Record("recipe:mine"), "it was not built from one, or by an earlier version of ctk"),
        (Record("recipe:../../.bashrc", recipe=RECIPE, lock=LOCK), "is not a recipe name"),
        (Record("recipe:bases", recipe=RECIPE, lock=LOCK), "is not a recipe name"),
        (Record("recipe:mine", recipe="\x1b[2J", lock="\x1b[2J"), "is not TOML"),
        (Record("recipe:mine", RecordedBase("x", entry="["), recipe=RECIPE, lock=LOCK), "is not TOML"),
    ],
)
def test_image_without_a_usable_recipe_is_refused(catalogue: Catalogue, record: Record | None, reason: str) -> None:
    with pytest.raises(WrongInput, match=reason):
        give_back(catalogue, record)
    assert not catalogue.own.exists()
