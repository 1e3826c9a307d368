"""Files of an index: who is given a password, and who is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.index.download import find_login
from toolkit.recipes.model import Index

if TYPE_CHECKING:
    from pathlib import Path

COMPANY = Index("company", "https://files.example:8443/simple")


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine netrc.example login ann password netrc-pw\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("UV_INDEX_COMPANY_USERNAME", "bob")
    monkeypatch.setenv("UV_INDEX_COMPANY_PASSWORD", "p:w@")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://eve:a%2Fb@mirror.example/simple")


@pytest.mark.parametrize(
    ("url", "login"),
    [
        ("https://files.example:8443/packages/x-1.0.tar.gz", ("bob", "p:w@")),
        ("https://files.example/x-1.0.tar.gz", None),
        ("http://files.example:8443/x-1.0.tar.gz", None),
        ("https://files.example.evil:8443/x-1.0.tar.gz", None),
        ("https://mirror.example/x-1.0.tar.gz", ("eve", "a/b")),
        ("https://netrc.example/x-1.0.tar.gz", ("ann", "netrc-pw")),
        ("https://files.pythonhosted.org/x-1.0.tar.gz", None),
    ],
)
def test_password_is_for_the_server_of_its_index(url: str, login: tuple[str, str] | None) -> None:
    assert find_login(url, [COMPANY]) == login
