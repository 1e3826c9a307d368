"""The user's logins at container registries: where they are kept, and which one is for a repository.

Sources: containers-auth.json(5) of podman and skopeo; Docker's documentation of config.json ("docker login",
"Credential helpers"); Apptainer's documentation, `apptainer registry login`.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.files import open_regular
from toolkit.support.ownership import is_trusted
from toolkit.support.paths import home
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Mapping

HUB = "docker.io"
# `docker login` writes the first one, other programs the others.
_HUB_NAMES = ("index.docker.io", "registry-1.docker.io", "registry.hub.docker.com")
_OF_THE_RUNTIME = (".apptainer/docker-config.json", ".singularity/docker-config.json", ".docker/config.json")
_HELPER = re.compile(r"[A-Za-z0-9._-]+")
_HELPER_SECONDS = 20
_TOKEN_USER = "<token>"  # noqa: S105 - by this user name a credential helper says that its secret is an identity token


@dataclass(frozen=True, slots=True)
class Login:
    """A login at a registry. `origin` names its file, and the credential helper that gave it, for messages.

    `secret` is a password, or with `is_token` an identity token of OAuth 2. It is never shown.
    """

    origin: str
    user: str = field(repr=False)
    secret: str = field(repr=False)
    is_token: bool = False

    @property
    def basic(self) -> str:
        """The value of an `Authorization` header."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.secret}'.encode()).decode()}"


def auth_files(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The files in which logins are kept, in order of precedence: those of the container runtime come first."""
    directory = home() or Path("/nonexistent")
    settings = Path(environment.get("XDG_CONFIG_HOME") or directory / ".config")
    chosen, run_time = environment.get("REGISTRY_AUTH_FILE"), environment.get("XDG_RUNTIME_DIR")
    return (
        *(directory / name for name in _OF_THE_RUNTIME[:2]),
        Path(environment.get("DOCKER_CONFIG") or directory / ".docker", "config.json"),
        *([Path(chosen)] if chosen else []),
        *([Path(run_time, "containers/auth.json")] if run_time else []),
        settings / "containers/auth.json",
    )


def find_login(host: str, repository: str = "", environment: Mapping[str, str] = os.environ) -> Login | None:
    """The first login for a repository of `host`; None if no file has one."""
    for path in auth_files(environment):
        if (login := _in_file(path, _names(host, repository))) is not None:
            return login
    return None


def file_with_login(host: str, repository: str = "", environment: Mapping[str, str] = os.environ) -> Path | None:
    """The first file that names a repository or its host; no credential helper is run for it."""
    names = set(_names(host, repository))
    for path in auth_files(environment):
        content = _read(path)
        if names & set(map(_plain, (*_table(content, "auths"), *_table(content, "credHelpers")))):
            return path
    return None


def may_be_lent(path: Path, host: str, repository: str = "") -> bool:
    """Whether the runtime may get this file: it would run a helper that the file names for the registry."""
    content = _read(path)
    helped = set(_names(host, repository)) & set(map(_plain, _table(content, "credHelpers")))
    return not helped and not content.get("credsStore") and _is_own(path)


def read_by_runtime(path: Path) -> bool:
    """Whether the runtime finds a login in this file by itself.

    Measured with Apptainer 1.4.5: it ignores DOCKER_CONFIG, REGISTRY_AUTH_FILE and podman's files.
    """
    directory = home()
    return directory is not None and path in [directory / name for name in _OF_THE_RUNTIME]


def _names(host: str, repository: str) -> list[str]:
    """What a login for a repository may be kept under, the most exact first: `host/a/b`, `host/a`, `host`."""
    parts = repository.split("/") if repository else []
    hosts = (host, *_HUB_NAMES) if host == HUB else (host,)
    exact = [f"{host}/{'/'.join(parts[:number])}" for number in range(len(parts), 0, -1)]
    return [*exact, *hosts]


def _in_file(path: Path, names: list[str]) -> Login | None:
    content = _read(path)
    logins, helpers = _table(content, "auths"), _table(content, "credHelpers")
    # As written in the file, by what it means: `https://index.docker.io/v1/` is index.docker.io.
    written = {_plain(key): key for key in (*helpers, *logins)}
    for name in names:
        if (key := written.get(name)) is None:
            continue
        helper = helpers.get(key) or (content.get("credsStore") if key in logins else None)
        login = _of_helper(path, helper, key) if isinstance(helper, str) else None
        login = login or _of_entry(path, logins.get(key))
        if login is not None:
            return login
    return None


def _read(path: Path) -> dict[str, Any]:
    """The content of a file of logins; nothing if there is none. Raises WrongInput if it is made to stop a program."""
    try:
        # A link is followed: some keep these files elsewhere. A pipe could block forever.
        with open_regular(Path(os.path.realpath(path))) as file:
            content = json.load(file)
    except RecursionError as error:
        raise _unusable(path) from error
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _table(content: dict[str, Any], key: str) -> dict[str, Any]:
    found = content.get(key)
    return found if isinstance(found, dict) else {}


def _plain(key: str) -> str:
    return re.sub(r"/v[12]/?$", "", re.sub(r"^https?://", "", key)).rstrip("/")


def _of_entry(path: Path, entry: Any) -> Login | None:
    if not isinstance(entry, dict):
        return None
    user, secret = entry.get("username"), entry.get("password")
    if isinstance(encoded := entry.get("auth"), str) and encoded:
        if not encoded.isascii():
            raise _unusable(path)
        try:
            user, _, secret = base64.b64decode(encoded).decode().rstrip("\0").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
    if isinstance(token := entry.get("identitytoken"), str) and token:
        return _login(path, str(path), str(user or ""), token, is_token=True)
    return _login(path, str(path), user, secret) if isinstance(user, str) and isinstance(secret, str) and user else None


def _of_helper(path: Path, helper: str, server: str) -> Login | None:
    """What `docker-credential-HELPER` has for `server`, if the user's own file names that program."""
    if not _HELPER.fullmatch(helper) or not _is_own(path):
        return None
    try:
        done = run([f"docker-credential-{helper}", "get"], input=server, timeout=_HELPER_SECONDS)
        answer = json.loads(done.stdout) if done.ok else None
    except (CtkError, ValueError, RecursionError):
        return None
    if not isinstance(answer, dict):
        return None
    user, secret = answer.get("Username"), answer.get("Secret")
    if not (isinstance(user, str) and isinstance(secret, str) and secret):
        return None
    return _login(path, f"docker-credential-{helper}, named in {path}", user, secret, is_token=user == _TOKEN_USER)


def _login(path: Path, origin: str, user: str, secret: str, *, is_token: bool = False) -> Login:
    try:
        f"{user}{secret}".encode()  # JSON can hold halves of characters, which cannot be sent
    except UnicodeEncodeError as error:
        raise _unusable(path) from error
    return Login(origin, user, secret, is_token)


def _unusable(path: Path) -> WrongInput:
    return WrongInput(
        f"the logins in {path} cannot be used: the file is damaged",
        fix="Repair the file or remove it; `apptainer registry login docker://HOST` stores a login again.",
    )


def _is_own(path: Path) -> bool:
    """Whether nobody else can have written the file: a program that it names is run."""
    status = path.stat()
    return is_trusted(status.st_uid) and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
