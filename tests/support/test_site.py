"""The settings of a site: found, remembered, and named where they are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.support.errors import WrongInput
from toolkit.support.site import Setting, Site, load_site

if TYPE_CHECKING:
    from pathlib import Path


def site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Path:
    path = tmp_path / "site.toml"
    path.write_text(text)
    monkeypatch.setenv("CTK_SITE", str(path))
    return path


def test_site_settings_remember_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'runtime = "singularity"\ncores = 4\nlayers = false\nhelp = "hpc@example.org"\n'
    path = site_file(tmp_path, monkeypatch, text)
    assert load_site() == Site(
        runtime=Setting("singularity", str(path)),
        cores=Setting(4, str(path)),
        layers=Setting(False, str(path)),
        help=Setting("hpc@example.org", str(path)),
    )


def test_settings_of_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'memory = "4G"\nstores = ["/opt/a", "$HOME/b"]\nstore_owners = ["alice"]\n[cache]\nkeep = "50G"\n'
    path = str(site_file(tmp_path, monkeypatch, text))
    assert load_site() == Site(
        memory=Setting(4 << 30, path),
        stores=Setting(("/opt/a", "$HOME/b"), path),
        store_owners=Setting(("alice",), path),
        cache_keep=Setting(50 << 30, path),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cores = 0", r"site\.toml:1: cores: should be at least 1, not 0"),
        ("cores = true", r"site\.toml:1: cores: should be a whole number"),
        ("runtme = 'x'", r'site\.toml:1: runtme: there is no such key\. Did you mean "runtime"\?'),
        ("layers = 0", r"site\.toml:1: layers: should be true or false"),
        ("memory = 4", r"site\.toml:1: memory: should be text in quotes"),
        ("memory = '1M'", r"site\.toml:1: memory: should be at least 64M"),
        ("memory = 'much'", r"site\.toml:1: memory: the value should be a size such as 50G"),
        ("stores = '/a'", r"site\.toml:1: stores: should be a list"),
        ("stores = ['a/b']", r"site\.toml:1: stores: should be a list of absolute paths, but contains 'a/b'"),
        ("store_owners = [3]", r"site\.toml:1: store_owners: should be a list of texts"),
        ("cache = 3", r"site\.toml:1: cache: should be a table"),
        ("[cache]\nkeep = 3", r"site\.toml:2: cache\.keep: should be text in quotes"),
        ("[cache]\nkeep = 'all'", r"site\.toml:2: cache\.keep: the value should be a size such as 50G"),
        ("[cache]\nkep = '1G'", r'site\.toml:2: cache\.kep: there is no such key\. Did you mean "keep"'),
        ("mirror = 3", r"site\.toml:1: mirror: should be text"),
        ("= 3", r"site\.toml is not TOML"),
    ],
)
def test_a_wrong_site_file_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    site_file(tmp_path, monkeypatch, text)
    with pytest.raises(WrongInput, match=expected):
        load_site()


def test_a_named_site_file_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTK_SITE", str(tmp_path / "none.toml"))
    with pytest.raises(WrongInput, match="No such file") as caught:
        load_site()
    assert "CTK_SITE" in (caught.value.fix or "")
