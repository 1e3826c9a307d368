"""`ctk new --like`: a recipe under another name, with its files, and nothing of the user's overwritten."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from toolkit.pins.authoring.copying import copy_recipe
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """# What it is for
base = "debian-12"
[[files]]
from = "demo/train.py"  # the script
to = "/opt/demo/train.py"
[[files]]
from = "shared/sets"
to = "/opt/sets"
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    for directory in ("shipped/demo", "shipped/shared/sets", "own"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "shipped/bases.toml").write_text('[debian-12]\nbootstrap = "debootstrap"\nreference = "bookworm"\n')
    (tmp_path / "shipped/demo.toml").write_text(TEXT)
    (tmp_path / "shipped/demo/train.py").write_text("print('shipped')\n")
    (tmp_path / "shipped/shared/sets/a.csv").write_text("1\n")
    return Catalogue(tmp_path / "own", tmp_path / "shipped")


def test_a_copy_has_the_script_in_a_directory_of_its_name(catalogue: Catalogue) -> None:
    own = catalogue.own
    written = copy_recipe(catalogue, "demo", "mine", force=False)
    assert written == [own / "mine.toml", own / "mine/train.py", own / "shared/sets"]
    assert (own / "mine.toml").read_text() == TEXT.replace('"demo/train.py"', '"mine/train.py"')
    assert (own / "mine/train.py").read_text() == "print('shipped')\n"
    assert (own / "shared/sets/a.csv").read_text() == "1\n"
    assert [copy.source for copy in catalogue.recipe("mine").files] == written[1:]


def test_a_copy_of_an_own_recipe_uses_its_other_files(catalogue: Catalogue) -> None:
    copy_recipe(catalogue, "demo", "mine", force=False)
    written = copy_recipe(catalogue, "mine", "other", force=False)
    assert written == [catalogue.own / "other.toml", catalogue.own / "other/train.py"]
    assert 'from = "shared/sets"' in (catalogue.own / "other.toml").read_text()


@pytest.mark.parametrize("there", ["mine.toml", "mine/train.py", "shared/sets/notes.txt"])
def test_nothing_that_exists_is_replaced_unasked(catalogue: Catalogue, there: str) -> None:
    path = catalogue.own / there
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("my own\n")
    with pytest.raises(WrongInput, match="already exists"):
        copy_recipe(catalogue, "demo", "mine", force=False)
    assert [file for file in catalogue.own.rglob("*") if file.is_file()] == [path]
    copy_recipe(catalogue, "demo", "mine", force=True)
    assert (catalogue.own / "mine/train.py").read_text() == "print('shipped')\n"


def test_a_link_is_not_written_through(catalogue: Catalogue, tmp_path: Path) -> None:
    (catalogue.own / "mine.toml").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WrongInput, match="symlink"):
        copy_recipe(catalogue, "demo", "mine", force=True)
    assert not (tmp_path / "elsewhere").exists()


def test_a_recipe_that_is_not_there_is_not_copied(catalogue: Catalogue) -> None:
    with pytest.raises(WrongInput, match='there is no recipe "dmo"'):
        copy_recipe(catalogue, "dmo", "mine", force=False)


# --- recipes of a cloned repository


@pytest.fixture
def cloned(catalogue: Catalogue, tmp_path: Path) -> Catalogue:
    """A recipe with a directory of its own, next to a private key."""
    (tmp_path / "id_rsa").write_text("private\n")
    (catalogue.own / "evil/sets").mkdir(parents=True)
    (catalogue.own / "evil/run.py").write_text("print('evil')\n")
    write_recipe(catalogue, "evil/sets")
    return catalogue


def write_recipe(catalogue: Catalogue, *sources: str) -> None:
    entries = "".join(f'[[files]]\nfrom = "{source}"\nto = "/opt/x"\n' for source in sources)
    (catalogue.own / "evil.toml").write_text(f'base = "debian-12"\n{entries}')


def contents(directory: Path) -> dict[str, str | None]:
    """Each path below a directory; of links where they lead, of files their text."""
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else None
        for path in directory.rglob("*")
    }


def refused(catalogue: Catalogue, reason: str, *, force: bool = False) -> WrongInput:
    """The refusal of a copy, which changes no file."""
    before = contents(catalogue.own.parent)
    with pytest.raises(WrongInput, match=reason) as caught:
        copy_recipe(catalogue, "evil", "mine", force=force)
    assert contents(catalogue.own.parent) == before
    assert caught.value.exit_status == 2
    return caught.value


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("source", ["evil/../../.bashrc", "evil/../../new", "evil/.."])
def test_a_file_outside_the_recipe_is_not_written(
    cloned: Catalogue, tmp_path: Path, source: str, *, force: bool
) -> None:
    deep = tmp_path / "a/b/c"
    deep.mkdir(parents=True)
    for planted in (".bashrc", "new"):
        (tmp_path / "a" / planted).write_text("planted\n")
    (tmp_path / ".bashrc").write_text("my own\n")
    (cloned.own / "evil").rename(tmp_path / "was")
    (cloned.own / "evil").symlink_to(deep)
    write_recipe(cloned, source)
    refused(cloned, r"`\.\.`|is a symlink to", force=force)


def test_two_dots_in_the_path_of_a_file_are_refused_by_name(cloned: Catalogue) -> None:
    write_recipe(cloned, "evil/sets/../../../new")
    (cloned.own.parent / "new").write_text("theirs\n")
    refused(cloned, r"contains `\.\.`")


@pytest.mark.parametrize("source", ["evil/key", "evil/sets", "evil", "evil/there/id_rsa"])
def test_a_link_among_the_files_is_not_followed(cloned: Catalogue, tmp_path: Path, source: str) -> None:
    for link in ("key", "sets/key"):
        (cloned.own / "evil" / link).symlink_to(tmp_path / "id_rsa")
    (cloned.own / "evil/there").symlink_to(tmp_path)
    write_recipe(cloned, "evil/run.py", source)
    assert refused(cloned, "is a symlink to").code == "link-in-recipe"


def test_a_directory_of_the_recipe_that_is_a_link_is_not_followed(cloned: Catalogue, tmp_path: Path) -> None:
    (cloned.own / "evil").rename(tmp_path / "elsewhere")
    (cloned.own / "evil").symlink_to(tmp_path / "elsewhere")
    assert refused(cloned, "own/evil is a symlink to").code == "link-in-recipe"


@pytest.mark.parametrize("planted", ["mine", "mine/sets", "mine/sets/a.csv", "mine/sets/b.csv"])
def test_a_link_at_or_below_the_target_is_refused_even_with_force(
    cloned: Catalogue, tmp_path: Path, planted: str
) -> None:
    (cloned.own / "evil/sets/a.csv").write_text("1\n")
    (tmp_path / "there/sets").mkdir(parents=True)
    link = cloned.own / planted
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(tmp_path / ("id_rsa" if link.suffix else "there"))
    assert refused(cloned, "symlink", force=True).code == "symlink"


def test_a_pipe_or_a_device_is_not_read(cloned: Catalogue) -> None:
    os.mkfifo(cloned.own / "evil/sets/pipe")
    refused(cloned, "cannot copy .*pipe: not a regular file")


def test_a_missing_file_leaves_no_directory_behind(cloned: Catalogue) -> None:
    write_recipe(cloned, "evil/run.py", "evil/none.py")
    refused(cloned, "cannot copy .*none.py: No such file")


def test_a_file_in_place_of_a_directory_is_not_replaced(cloned: Catalogue) -> None:
    (cloned.own / "mine").write_text("my own\n")
    refused(cloned, "cannot write .*mine: it exists and is not a directory", force=True)


def test_a_directory_is_copied_whole_with_modes(cloned: Catalogue) -> None:
    (cloned.own / "evil/run.py").chmod(0o755)
    write_recipe(cloned, "evil")
    copy_recipe(cloned, "evil", "mine", force=False)
    assert (cloned.own / "mine/sets").is_dir()
    assert os.access(cloned.own / "mine/run.py", os.X_OK)
