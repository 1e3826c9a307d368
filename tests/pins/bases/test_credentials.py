"""The user's logins at registries: which file has one, in which form, and for what."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from toolkit.pins.bases.credentials import auth_files, file_with_login, find_login, read_by_runtime
from toolkit.support.errors import WrongInput

HUB_KEY = "https://index.docker.io/v1/"
SECRET = "s3cret:with:colons"  # noqa: S105


def entry(user: str = "ann", secret: str = SECRET) -> dict[str, str]:
    return {"auth": b64encode(f"{user}:{secret}".encode()).decode()}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HOME", str(tmp_path))
    return {}


def write(path: Path, **content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    path.chmod(0o600)
    return path


def test_the_files_of_the_runtime_come_first(tmp_path: Path, settings: dict[str, str]) -> None:
    names = (".apptainer/docker-config.json", ".singularity/docker-config.json", ".docker/config.json")
    usual = [*(tmp_path / name for name in names), tmp_path / ".config/containers/auth.json"]
    assert list(auth_files(settings)) == usual
    chosen = {
        "DOCKER_CONFIG": "/d",
        "REGISTRY_AUTH_FILE": "/p.json",
        "XDG_RUNTIME_DIR": "/run/user/1",
        "XDG_CONFIG_HOME": "/c",
    }
    others = ("/d/config.json", "/p.json", "/run/user/1/containers/auth.json", "/c/containers/auth.json")
    assert list(auth_files(chosen)) == [*usual[:2], *map(Path, others)]
    for number, path in enumerate(reversed(usual)):
        write(path, auths={"quay.io": entry(f"user-{number}")})
        found = find_login("quay.io", "a/b", settings)
        assert found is not None
        assert (found.user, found.secret, found.origin) == (f"user-{number}", SECRET, str(path))


@pytest.mark.parametrize(
    ("key", "host", "repository", "fits"),
    [
        ("quay.io", "quay.io", "a/b", True),
        ("https://quay.io", "quay.io", "a/b", True),
        ("https://quay.io/v2/", "quay.io", "a/b", True),
        ("quay.io:5000", "quay.io", "a/b", False),
        ("127.0.0.1:5000", "127.0.0.1:5000", "a/b", True),
        ("quay.io/a", "quay.io", "a/b", True),
        ("quay.io/a/b", "quay.io", "a/b", True),
        ("quay.io/a/bc", "quay.io", "a/b", False),
        ("quay.io/c", "quay.io", "a/b", False),
        (HUB_KEY, "docker.io", "library/ubuntu", True),
        ("docker.io", "docker.io", "library/ubuntu", True),
        ("registry-1.docker.io", "docker.io", "library/ubuntu", True),
        (HUB_KEY, "quay.io", "a/b", False),
        ("evil-quay.io", "quay.io", "a/b", False),
    ],
)
def test_a_login_is_for_its_registry(
    tmp_path: Path, settings: dict[str, str], key: str, host: str, repository: str, fits: bool
) -> None:
    write(tmp_path / ".docker/config.json", auths={key: entry()})
    assert (find_login(host, repository, settings) is not None) is fits


def test_the_most_exact_login_of_a_file_is_used(tmp_path: Path, settings: dict[str, str]) -> None:
    auths = {"quay.io": entry("host"), "quay.io/a": entry("team"), "quay.io/a/b": entry("repository")}
    write(tmp_path / ".config/containers/auth.json", auths=auths)
    found = [find_login("quay.io", repository, settings) for repository in ("a/b", "a/c", "d", "")]
    assert [login.user for login in found if login] == ["repository", "team", "host", "host"]


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        '{"auths": []}',
        '{"auths": {"quay.io": 3}}',
        '{"auths": {"quay.io": {}}}',
        '{"auths": {"quay.io": {"auth": "%%%"}}}',
        '{"auths": {"quay.io": {"auth": "/w=="}}}',
        '{"auths": {"quay.io": {"auth": 3}}}',
        '{"credHelpers": {"quay.io": 3}}',
        '{"credsStore": 3, "auths": {"quay.io": {}}}',
    ],
)
def test_a_damaged_file_has_no_login(tmp_path: Path, settings: dict[str, str], content: str) -> None:
    write(tmp_path / ".apptainer/docker-config.json")
    (tmp_path / ".apptainer/docker-config.json").write_text(content)
    assert find_login("quay.io", "a", settings) is None
    write(tmp_path / ".docker/config.json", auths={"quay.io": entry()})
    assert find_login("quay.io", "a", settings) is not None, "the next file is read"


@pytest.mark.parametrize(
    "content",
    [
        "[" * 20_000,
        '{"auths": {"quay.io": {"auth": "é"}}}',
        '{"auths": {"quay.io": {"username": "ann", "password": "\\ud800"}}}',
        '{"auths": {"quay.io": {"identitytoken": "\\ud800"}}}',
    ],
)
def test_a_login_that_cannot_be_sent_names_its_file(tmp_path: Path, settings: dict[str, str], content: str) -> None:
    path = write(tmp_path / ".docker/config.json")
    path.write_text(content)
    with pytest.raises(WrongInput, match=f"the logins in {path} cannot be used"):
        find_login("quay.io", "a", settings)


def test_a_pipe_is_not_read_and_a_link_is(tmp_path: Path, settings: dict[str, str]) -> None:
    (tmp_path / ".docker").mkdir()
    os.mkfifo(tmp_path / ".docker/config.json")
    assert find_login("quay.io", "a", settings) is None
    real = write(tmp_path / "real.json", auths={"quay.io": entry()})
    (tmp_path / ".docker/config.json").unlink()
    (tmp_path / ".docker/config.json").symlink_to(real)
    assert find_login("quay.io", "a", settings) is not None


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A credential helper `docker-credential-tests` on PATH that notes what it was asked."""
    program = tmp_path / "bin/docker-credential-tests"
    program.parent.mkdir()
    answer = json.dumps({"ServerURL": "x", "Username": "ann", "Secret": SECRET})
    program.write_text(f"#!/bin/sh\nread server\necho \"$1 $server\" >> {tmp_path}/asked\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return tmp_path / "asked"


@pytest.mark.parametrize(
    "content",
    [
        {"credHelpers": {"quay.io": "tests"}},
        {"credHelpers": {"quay.io": "tests"}, "auths": {"quay.io": {}}},
        {"credsStore": "tests", "auths": {"quay.io": {}}},
    ],
)
def test_a_helper_that_the_user_s_file_names_is_asked(
    tmp_path: Path, settings: dict[str, str], helper: Path, content: dict[str, Any]
) -> None:
    path = write(tmp_path / ".docker/config.json", **content)
    found = find_login("quay.io", "a", settings)
    assert found is not None
    assert (found.user, found.secret) == ("ann", SECRET)
    assert found.origin == f"docker-credential-tests, named in {path}"
    assert helper.read_text() == "get quay.io\n"
    assert find_login("ghcr.io", "a", settings) is None
    assert helper.read_text() == "get quay.io\n", "it is not asked about other registries"


@pytest.mark.parametrize("name", ["../bin/docker-credential-tests", "a/../../tests", "tests;true", ""])
def test_no_other_program_is_run(tmp_path: Path, settings: dict[str, str], helper: Path, name: str) -> None:
    write(tmp_path / ".docker/config.json", credHelpers={"quay.io": name})
    assert find_login("quay.io", "a", settings) is None
    assert not helper.exists()


def test_a_file_that_others_can_write_runs_no_helper(tmp_path: Path, settings: dict[str, str], helper: Path) -> None:
    path = write(tmp_path / ".docker/config.json", credHelpers={"quay.io": "tests"})
    path.chmod(0o666)
    assert find_login("quay.io", "a", settings) is None
    assert not helper.exists()


@pytest.mark.parametrize(
    "body",
    ["exit 1", "echo no json", "printf '%0100000d' 0 | tr 0 [", "echo '[]'", "echo '{}'", 'echo \'{"Username": "a"}\''],
)
def test_a_failing_helper_is_no_login(tmp_path: Path, settings: dict[str, str], helper: Path, body: str) -> None:
    (tmp_path / "bin/docker-credential-tests").write_text(f"#!/bin/sh\n{body}\n")
    write(tmp_path / ".docker/config.json", credHelpers={"quay.io": "tests", "ghcr.io": "missing"})
    assert find_login("quay.io", "a", settings) is None
    assert find_login("ghcr.io", "a", settings) is None


def test_an_identity_token_is_told_from_a_password(tmp_path: Path, settings: dict[str, str], helper: Path) -> None:
    answer = json.dumps({"Username": "<token>", "Secret": SECRET})
    (tmp_path / "bin/docker-credential-tests").write_text(f"#!/bin/sh\necho '{answer}'\n")
    auths = {"a.azurecr.io": {**entry("00000000-0000-0000-0000-000000000000", ""), "identitytoken": SECRET}}
    write(tmp_path / ".docker/config.json", auths=auths, credHelpers={"quay.io": "tests"})
    for host in ("a.azurecr.io", "quay.io"):
        found = find_login(host, "x", settings)
        assert found is not None
        assert (found.is_token, found.secret) == (True, SECRET)
        assert SECRET not in repr(found)


def test_the_file_of_a_login_is_found_without_its_helper(
    tmp_path: Path, settings: dict[str, str], helper: Path
) -> None:
    path = write(tmp_path / ".config/containers/auth.json", credHelpers={"quay.io": "tests"}, auths={"ghcr.io/a": {}})
    assert file_with_login("quay.io", "a", settings) == path
    assert file_with_login("ghcr.io", "a/b", settings) == path
    assert file_with_login("ghcr.io", "b", settings) is None
    assert not helper.exists()
    assert not read_by_runtime(path)
    docker = write(tmp_path / ".docker/config.json", auths={"quay.io": {}})
    assert file_with_login("quay.io", "a", settings) == docker
    assert read_by_runtime(docker)
