"""Adding and removing packages leaves everything else of a user's file as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.authoring.edit import APT, added, recipe_text, removed, skipping, write_edit
from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """\
# mine
base = "debian-12"  # for now

packages = [
    "numpy<2",  # not yet
    # for plots
    "matplotlib",
]

[job]
gpus = 0  # none here
"""


def add_packages(path: Path, packages: list[str], key: str = "packages") -> tuple[str, ...]:
    write_edit(edit := added(path, packages, key), path)
    return edit.changed


def remove_packages(path: Path, packages: list[str]) -> tuple[str, ...]:
    write_edit(edit := removed(path, packages), path)
    return edit.changed


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE)
    return path


def comments(text: str) -> list[str]:
    return [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]


def test_a_package_is_added_on_a_line_of_its_own(recipe: Path) -> None:
    assert add_packages(recipe, ["pandas", "scipy>=1"]) == ("pandas", "scipy>=1")
    text = recipe.read_text()
    assert parse_toml(text)["packages"] == ["numpy<2", "matplotlib", "pandas", "scipy>=1"]
    assert comments(text) == comments(RECIPE)
    assert '    "pandas",\n' in text


def test_a_package_that_is_there_is_replaced_in_its_place(recipe: Path) -> None:
    assert add_packages(recipe, ["NumPy>=2", "matplotlib"]) == ("NumPy>=2",)
    assert parse_toml(recipe.read_text())["packages"] == ["NumPy>=2", "matplotlib"]
    assert comments(recipe.read_text()) == comments(RECIPE)


def test_nothing_is_written_where_nothing_changes(recipe: Path) -> None:
    before = recipe.stat().st_mtime_ns
    assert add_packages(recipe, ["matplotlib"]) == ()
    assert recipe.stat().st_mtime_ns == before


def test_a_package_is_removed_whatever_version_it_asks_for(recipe: Path) -> None:
    assert remove_packages(recipe, ["numpy"]) == ("numpy<2",)
    assert parse_toml(recipe.read_text())["packages"] == ["matplotlib"]
    with pytest.raises(WrongInput, match=r'Did you mean "matplotlib"'):
        remove_packages(recipe, ["matplotlip"])


def test_a_recipe_without_packages_gets_them_before_its_first_table(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "debian-12"\n\n[job]\ngpus = 0\n')
    add_packages(path, ["numpy"])
    assert parse_toml(path.read_text()) == {"base": "debian-12", "packages": ["numpy"], "job": {"gpus": 0}}


@pytest.mark.parametrize("bad", ["a b", "", "numpy==", "numpy\nevil", "-r x"])
def test_what_is_no_requirement_is_refused_and_nothing_is_written(recipe: Path, bad: str) -> None:
    with pytest.raises(WrongInput):
        add_packages(recipe, ["pandas", bad])
    assert recipe.read_text() == RECIPE


@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{0,6}", fullmatch=True), max_size=6, unique=True))
def test_what_is_added_and_removed_again_leaves_the_other_packages(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    path = tmp_path_factory.mktemp("edit") / "mine.toml"
    path.write_text(RECIPE)
    fresh = [name for name in names if name not in ("numpy", "matplotlib")]
    add_packages(path, fresh)
    remove_packages(path, fresh)
    assert parse_toml(path.read_text()) == parse_toml(RECIPE)
    assert comments(path.read_text()) == comments(RECIPE)


def test_a_new_recipe_is_one_that_ctk_reads(tmp_path: Path) -> None:
    from toolkit.recipes.bases import bases_in
    from toolkit.recipes.load import load_recipe
    from toolkit.support.paths import shipped

    path = tmp_path / "mine.toml"
    path.write_text(recipe_text(base="debian-12", packages=["a", "b", "c", "d", "e"], command=["python", "x y.py"]))
    recipe = load_recipe(path, bases_in(shipped("defs")))
    assert recipe.packages == ("a", "b", "c", "d", "e")
    assert recipe.job.command == ("python", "x y.py")


TWO = """\
packages = ["numpy==1.24; python_version<'3.9'", "NumPy==1.26.4; python_version>='3.9'", "six"]
"""


def test_all_lines_of_a_package_are_removed_or_replaced(recipe: Path) -> None:
    recipe.write_text(TWO)
    assert len(remove_packages(recipe, ["numpy"])) == 2
    assert parse_toml(recipe.read_text())["packages"] == ["six"]
    recipe.write_text(TWO)
    assert add_packages(recipe, ["numpy<2", "six"]) == ("numpy<2",)
    assert parse_toml(recipe.read_text())["packages"] == ["numpy<2", "six"]
    lines = ("numpy<1; python_version<'3.8'", "numpy<2; python_version=='3.8'", "numpy>=2; python_version>'3.8'")
    assert add_packages(recipe, lines) == lines
    assert parse_toml(recipe.read_text())["packages"] == [lines[0], "six", *lines[1:]]


def test_a_link_stays_a_link_and_the_mode_stays(recipe: Path, tmp_path: Path) -> None:
    recipe.chmod(0o660)
    link = tmp_path / "link.toml"
    link.symlink_to("mine.toml")
    add_packages(link, ["six"])
    assert link.is_symlink()
    assert recipe.stat().st_mode & 0o777 == 0o660
    assert "six" in recipe.read_text()


def test_debian_packages_go_into_their_own_list(recipe: Path) -> None:
    assert add_packages(recipe, ["gcc", "libffi-dev=3.4.4-1"], APT) == ("gcc", "libffi-dev=3.4.4-1")
    assert add_packages(recipe, ["gcc", "libffi-dev"], APT) == ("libffi-dev",)
    assert added(recipe, [], APT).entries == ("gcc", "libffi-dev")
    assert removed(recipe, ["gcc"], APT).entries == ("libffi-dev",)
    before = recipe.read_bytes()
    for bad in ("gcc; reboot", "$(id)", "-y", "Gcc"):
        with pytest.raises(WrongInput, match="is not the name of a Debian package"):
            add_packages(recipe, ["make", bad], APT)
    assert recipe.read_bytes() == before


def test_what_is_not_imported_is_remembered_once_and_comments_stay(recipe: Path) -> None:
    before = recipe.read_text()
    write_edit(skipping(recipe, ["kaggle"]), recipe)
    assert recipe.read_text() == f'{before}\n[imports]\nskip = ["kaggle"]\n'
    assert skipping(recipe, ["kaggle"]).changed == ()
    write_edit(skipping(recipe, ["kaggle", "mosek"]), recipe)
    assert recipe.read_text().endswith('skip = ["kaggle", "mosek"]\n')


@pytest.mark.parametrize(
    ("table", "left"),
    [
        ('[imports]\nskip = ["Kaggle"]\n', ""),
        ('[imports]\nskip = ["kaggle", "mosek"]  # licence\n', '[imports]\nskip = ["mosek"]  # licence\n'),
        ('imports.skip = ["kaggle"]\n', ""),
        ('imports = { skip = ["kaggle"] }\n', ""),
    ],
)
def test_removed_package_is_not_skipped_any_more(tmp_path: Path, table: str, left: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "x"\npackages = ["kaggle", "numpy"]\n{table}')
    edit = removed(path, ["kaggle"])
    assert (edit.changed, edit.unskipped) == (("kaggle",), ("kaggle",))
    assert edit.text == f'base = "x"\npackages = ["numpy"]\n{left}'
    assert removed(path, ["numpy"]).unskipped == ()


@pytest.mark.parametrize("text", ['[imports]\nskip = "x"\n', "imports = 3\n"])
def test_a_list_of_another_form_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "x"\n{text}')
    with pytest.raises(WrongInput, match="should be a"):
        skipping(path, ["kaggle"])


def test_a_list_in_a_table_of_one_line_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "x"\nimports = { skip = ["Kaggle"] }  # no key here\n')
    assert skipping(path, ["kaggle", "mosek"]).text.endswith(
        'imports = { skip = ["Kaggle", "mosek"] }  # no key here\n'
    )


def test_line_ends_of_a_recipe_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b'# mine\r\nbase = "debian-12"\r\npackages = ["einops"]\r\n')
    write_edit(added(path, ["numpy"]), path)
    assert path.read_bytes() == b'# mine\r\nbase = "debian-12"\r\npackages = ["einops", "numpy"]\r\n'
