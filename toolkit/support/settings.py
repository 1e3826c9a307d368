"""This user's own settings: `~/.config/ctk/settings.toml`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from toolkit.support.paths import home
from toolkit.support.site import Setting, Site, cache_keep_in
from toolkit.support.tomlfile import read_toml


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user chose for all their commands; each is None if they did not.

    cache_keep: bytes that the store may use; after a build the rest is pruned. cluster: name of the cluster profile of
    jobs.
    """

    cache_keep: Setting[int] | None = None
    cluster: Setting[str] | None = None


def settings_path() -> Path | None:
    """The file of the settings, which need not exist; None if this user has no home directory.

    XDG_CONFIG_HOME counts only if it is an absolute path (XDG Base Directory Specification).
    """
    named = os.environ.get("XDG_CONFIG_HOME", "")
    if named.startswith("/"):
        return Path(named, "ctk", "settings.toml")
    directory = home()
    return directory / ".config" / "ctk" / "settings.toml" if directory else None


def load_settings() -> Settings:
    """Read the settings of this user. Raises WrongInput, with file and line, if the file is invalid."""
    path = settings_path()
    if path is None or not os.path.lexists(path):
        return Settings()
    file = read_toml(path)
    file.check_keys(file.content, ("cache", "cluster"))
    cluster = file.get(file.content, "cluster", str)
    return Settings(cache_keep_in(file), None if cluster is None else Setting(cluster, str(file.path)))


def cache_keep(site: Site) -> Setting[int] | None:
    """How many bytes the store may use: as this user says, else as the site says, else without a limit.

    Raises WrongInput if the user's file is invalid.
    """
    return load_settings().cache_keep or site.cache_keep
