"""Package indexes beside PyPI: their key in a recipe, and their credentials, which stay outside of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.recipes.indexes import NAME, credentials, credentials_variable, index_of_option, name_of
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import Base, Index
from toolkit.support.errors import WrongInput
from toolkit.support.redaction import HIDDEN, redact_variable

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.recipes.model import Recipe

URL = "https://pypi.corp.example:8443/simple"


def recipe(directory: Path, text: str) -> Recipe:
    path = directory / "mine.toml"
    path.write_text(f'base = "b"\n{text}')
    return load_recipe(path, {"b": Base("b", "docker", "a/b")})


def test_index_arrives_with_its_packages(tmp_path: Path) -> None:
    text = (
        f'[[index]]\nurl = "{URL}"\npackages = ["My_Lib", "other"]\n'
        '[[index]]\nname = "wheels"\nurl = "http://127.0.0.1/files"\nkind = "find-links"\n'
    )
    assert recipe(tmp_path, text).indexes == (
        Index("pypi-corp-example", URL, ("my-lib", "other")),
        Index("wheels", "http://127.0.0.1/files", (), "find-links"),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[index]]\nname = "x"\n', r"mine.toml:2: index\[1\].url: should be an http or https URL"),
        ('[[index]]\nurl = "file:///x"\n', "should be an http or https URL"),
        ('[[index]]\nurl = "https://[x"\n', "should be an http or https URL"),
        ('packages = ["x @ https://[x"]\n', "not a package requirement"),
        ('[[index]]\nurl = "https://x/$(id)"\n', "should be an http or https URL"),
        ('[[index]]\nurl = "https://ann:secret@x/"\n', "contains credentials"),
        ('[[index]]\nurl = "https://x/?token=secret"\n', "contains credentials"),
        ('[[index]]\nurl = "https://x/"\nname = "X y"\n', "lower-case letters"),
        ('[[index]]\nurl = "https://x/"\nkind = "flat"\n', "one of index, find-links"),
        ('[[index]]\nurl = "https://x/"\npackages = ["a>=1"]\n', "put versions in"),
        ('[[index]]\nurl = "https://x/"\npackage = ["a"]\n', 'Did you mean "packages"'),
        ('[[index]]\nurl = "https://x/1"\n[[index]]\nurl = "https://x/2"\n', 'two indexes are named "x"'),
        (
            '[[index]]\nurl = "https://x/"\npackages = ["a"]\n[[index]]\nurl = "https://y/"\npackages = ["A"]\n',
            "a is already assigned to another index",
        ),
    ],
)
def test_index_invalid_names_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(WrongInput, match=words) as refused:
        recipe(tmp_path, text)
    assert "secret" not in (refused.value.fix or "")


def test_credentials_come_from_the_environment_else_from_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indexes = [Index("corp", URL), Index("other-one", "https://other.example/simple")]
    file = tmp_path / "netrc"
    file.write_text("machine pypi.corp.example login ann password one\nmachine other.example login bob password two\n")
    file.chmod(0o600)
    monkeypatch.setenv("NETRC", str(file))
    monkeypatch.setenv("UV_INDEX_CORP_USERNAME", "token")
    assert credentials(indexes) == {
        "UV_INDEX_CORP_USERNAME": "token",
        "UV_INDEX_OTHER_ONE_USERNAME": "bob",
        "UV_INDEX_OTHER_ONE_PASSWORD": "two",
    }
    file.write_text("machine\n")
    assert list(credentials(indexes)) == ["UV_INDEX_CORP_USERNAME"]
    assert credentials([]) == {}


@pytest.mark.parametrize("prefix", ["", "APPTAINERENV_"])
def test_credentials_of_an_index_are_hidden_in_logs(prefix: str) -> None:
    for end in ("USERNAME", "PASSWORD"):
        assert redact_variable(f"{prefix}{credentials_variable('corp')}_{end}", "x") == HIDDEN


@given(st.text(min_size=1))
def test_any_address_gives_a_name_that_may_be_written(host: str) -> None:
    assert NAME.fullmatch(name_of(f"https://{host}/simple"))


def test_option_of_pip_becomes_an_index_without_its_credentials() -> None:
    index, finding = index_of_option("--extra-index-url", f"https://ann:s3cret@{URL.removeprefix('https://')}")
    assert index == Index("pypi-corp-example", URL)
    assert finding is not None
    assert "s3cret" not in f"{index}{finding}"
    page = index_of_option("-f", "https://x.example/w")[0]
    assert page == Index("x-example", "https://x.example/w", (), "find-links")
    assert index_of_option("-f", "./wheels") == (None, None)
    assert index_of_option("-i", "https://[x/") == (None, None)
