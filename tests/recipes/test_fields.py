"""Values of TOML files: read and checked, with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.recipes.fields import APT_PACKAGE, apt_packages, one_of, text_of
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import TomlFile, parse_toml


def file_of(text: str) -> TomlFile:
    return TomlFile(Path("mine.toml"), text, parse_toml(text))


def refusal(wrong: pytest.ExceptionInfo[WrongInput]) -> str:
    return wrong.value.message


def test_text_is_returned_as_it_is_and_may_be_absent() -> None:
    file = file_of('name = " a b "\nempty = ""\n')
    assert [text_of(file, file.content, key) for key in ("name", "empty", "none")] == [" a b ", "", None]


@pytest.mark.parametrize(
    ("text", "words"), [('a = 1\nname = "x\\ny"\n', "the value"), ("a = 1\nname = 3\n", "text in quotes")]
)
def test_text_of_several_lines_or_another_type_is_refused_at_its_line(text: str, words: str) -> None:
    file = file_of(text)
    with pytest.raises(WrongInput, match=words) as wrong:
        text_of(file, file.content, "name")
    assert refusal(wrong).startswith("mine.toml:2: name: ")


def test_text_of_a_table_is_refused_with_the_name_of_the_table() -> None:
    file = file_of('[x]\ny = "a\\tb\\u0007"\n')
    with pytest.raises(WrongInput) as wrong:
        text_of(file, file.content["x"], "y", "x.")
    assert refusal(wrong).startswith("mine.toml:2: x.y: ")


def test_word_is_the_known_one() -> None:
    file = file_of('bootstrap = "docker"\n')
    assert one_of(file, "bootstrap", "docker", Bootstrap) is Bootstrap.DOCKER


@pytest.mark.parametrize("value", ["dokcer", "Docker", "", None])
def test_other_word_is_refused_with_the_known_ones(value: str | None) -> None:
    file = file_of(f'bootstrap = "{value}"\n')
    with pytest.raises(WrongInput, match="should be one of docker, localimage") as wrong:
        one_of(file, "bootstrap", value, Bootstrap)
    assert refusal(wrong).startswith("mine.toml:1: bootstrap: ")
    assert ('Did you mean "docker"' in refusal(wrong)) is (value in ("dokcer", "Docker"))


def test_packages_of_debian_keep_their_order() -> None:
    file = file_of('apt = ["libc6:arm64", "g++", "git=1:2.39.2-1+deb12u1~x"]\n')
    assert apt_packages(file, file.content) == ("libc6:arm64", "g++", "git=1:2.39.2-1+deb12u1~x")
    assert apt_packages(file, {}) == ()


@pytest.mark.parametrize("name", ["g", "Git", "-y", "git;id", "git curl", "$(id)", "git=", "git\n", "", "../x"])
def test_other_text_is_no_package_of_debian(name: str) -> None:
    assert APT_PACKAGE.fullmatch(name) is None
    file = TomlFile(Path("mine.toml"), "apt = []", {"apt": ["git", name]})
    with pytest.raises(WrongInput, match=r"mine\.toml:1: apt: .* is not the name of a Debian package"):
        apt_packages(file, file.content)
