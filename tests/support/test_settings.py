"""The settings of a user: found by the XDG rules, before those of the site, and named where they are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.support.errors import WrongInput
from toolkit.support.settings import Settings, cache_keep, load_settings, settings_path
from toolkit.support.site import Setting, Site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "ctk").mkdir(parents=True)
    return tmp_path / "config" / "ctk"


def test_without_a_file_nothing_is_set(directory: Path) -> None:
    assert load_settings() == Settings()
    assert cache_keep(Site()) is None


@pytest.mark.parametrize("named", ["", "relative/config"])
def test_the_file_is_in_the_home_by_default(directory: Path, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", named)
    assert settings_path() == directory.parents[1] / "home/.config/ctk/settings.toml"


def test_without_a_home_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr("toolkit.support.settings.home", lambda: None)
    assert load_settings() == Settings()


def test_the_user_comes_before_the_site(directory: Path) -> None:
    site = Site(cache_keep=Setting(7, "/etc/ctk/site.toml"))
    assert cache_keep(site) == site.cache_keep
    (directory / "settings.toml").write_text('[cache]\nkeep = "20G"\n')
    assert cache_keep(site) == Setting(20 << 30, str(directory / "settings.toml"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[cache]\nkeep = 20", r"settings\.toml:2: cache\.keep: should be text in quotes"),
        ("[cache]\nkeep = 'x'", r"settings\.toml:2: cache\.keep: the value should be a size"),
        ("[chache]", r'settings\.toml:1: chache: there is no such key\. Did you mean "cache"\?'),
        ("[cache", r"settings\.toml is not TOML"),
    ],
)
def test_a_wrong_file_says_where(directory: Path, text: str, expected: str) -> None:
    (directory / "settings.toml").write_text(text)
    with pytest.raises(WrongInput, match=expected):
        load_settings()


def test_a_dangling_symlink_is_named(directory: Path) -> None:
    (directory / "settings.toml").symlink_to("nowhere")
    with pytest.raises(WrongInput, match="No such file"):
        load_settings()
