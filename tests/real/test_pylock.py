"""`ctk lock --export` and the real uv and pip: elsewhere they install exactly what the lock adds."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import TYPE_CHECKING

import pytest
from packaging.pylock import Pylock

from tests.pins.bases.foreign import HOST
from tests.real.company import PASSWORD, USER, file_server, make_wheel
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def company_index(tmp_path: Path) -> Iterator[str]:
    """An index with hashes that needs a password."""
    make_wheel(tmp_path, "ctkown", "1.0", "six")
    page = tmp_path / "simple/ctkown"
    (wheel,) = page.glob("*.whl")
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (page / "index.html").write_text(f'<a href="{wheel.name}#sha256={sha256}">{wheel.name}</a>')
    with file_server(tmp_path) as address:
        yield f"{address}/simple"


@pytest.mark.parametrize("user", ["me"], indirect=True)
def test_uv_and_pip_install_exactly_what_was_exported(user: User, directory: Path, company_index: str) -> None:
    (directory / "defs").mkdir()
    (directory / "defs/bases.toml").write_text(
        f'[here]\nbootstrap = "debootstrap"\nreference = "bookworm"\npython = "{PYTHON}"\n'
    )
    (directory / "defs/mine.toml").write_text(
        'base = "here"\npackages = ["ctkown", "idna"]\n'
        f'[[index]]\nname = "company"\nurl = "{company_index}"\npackages = ["ctkown"]\n'
    )
    login = {"UV_INDEX_COMPANY_USERNAME": USER, "UV_INDEX_COMPANY_PASSWORD": PASSWORD}
    done = user.ctk("lock", "mine", "--export", "pylock.mine.toml", "--json", cwd=directory, env=login)
    locked = {package["name"]: package["version"] for package in json.loads(done.stdout)[HOST]["packages"]}
    assert locked.keys() == {"ctkown", "idna", "six"}
    assert "Exported to pylock.mine.toml" in done.stderr
    text = (directory / "pylock.mine.toml").read_text()
    Pylock.from_dict(parse_toml(text))
    assert USER not in text
    assert PASSWORD not in text
    assert company_index.removesuffix("/simple") in text

    # Elsewhere: a virtual environment, uv and pip, and a netrc for the company's files.
    (directory / "netrc").write_text(f'machine 127.0.0.1 login {USER} password "{PASSWORD}"\n')
    (directory / "netrc").chmod(0o600)
    elsewhere = {"NETRC": str(directory / "netrc"), "UV_CACHE_DIR": str(directory / "uv")}
    uv = [sys.executable, "-m", "uv"]

    def installed(environment: str) -> dict[str, str]:
        listed = user.run(*uv, "pip", "list", "--format", "json", "--python", environment, cwd=directory).stdout
        return {package["name"]: package["version"] for package in json.loads(listed) if package["name"] != "pip"}

    for environment in ("by-uv", "by-pip"):
        user.run(*uv, "venv", "--quiet", "--python", sys.executable, environment, cwd=directory, env=elsewhere)
    user.run(*uv, "pip", "sync", "--python", "by-uv", "pylock.mine.toml", cwd=directory, env=elsewhere)
    assert installed("by-uv") == locked
    user.run(*uv, "pip", "install", "--python", "by-pip", "pip>=26.1", cwd=directory, env=elsewhere)
    user.run(
        "by-pip/bin/python", "-m", "pip", "install", "--no-deps", "-r", "pylock.mine.toml", cwd=directory, env=elsewhere
    )
    assert installed("by-pip") == locked

    # The lock is current: the same text again. Another's file stays.
    user.ctk("lock", "mine", "--export", "pylock.mine.toml", cwd=directory, env=login)
    assert (directory / "pylock.mine.toml").read_text() == text
    (directory / "pylock.toml").write_text("mine\n")
    refused = user.ctk("lock", "mine", "--export", "pylock.toml", cwd=directory, status=2).stderr
    assert "--force" in refused
    assert (directory / "pylock.toml").read_text() == "mine\n"
    user.ctk("lock", "mine", "--export", "pylock.toml", "--force", cwd=directory, env=login)
    assert (directory / "pylock.toml").read_text() == text
