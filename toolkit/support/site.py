"""The site's settings for all its users: `/etc/ctk/site.toml`, or the file that CTK_SITE names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import read_toml

T = TypeVar("T")
_DEFAULT = Path("/etc/ctk/site.toml")


@dataclass(frozen=True, slots=True)
class Setting(Generic[T]):
    """A value, and the file that set it."""

    value: T
    origin: str


@dataclass(frozen=True, slots=True)
class Site:
    """The site's settings; each is None if the site does not set it.

    runtime: path or name of the container runtime. work_area: a directory for large files, may contain $USER etc.
    mirror: URI of a Debian archive for debootstrap bases. cores: how many cores a build may use on a login node.
    layers: whether `ctk build` may make layered images; false if compute nodes do not mount them. help: whom to ask
    (an address or a page).
    """

    runtime: Setting[str] | None = None
    work_area: Setting[str] | None = None
    mirror: Setting[str] | None = None
    cores: Setting[int] | None = None
    layers: Setting[bool] | None = None
    help: Setting[str] | None = None


_KEYS = ("runtime", "work_area", "mirror", "cores", "layers", "help")


def load_site() -> Site:
    """Read the site's settings. Raises WrongInput if the file is invalid, or CTK_SITE names a missing file."""
    named = os.environ.get("CTK_SITE")
    path = Path(named) if named else _DEFAULT
    if not named and not path.is_file():
        return Site()
    try:
        file = read_toml(path)
    except WrongInput as error:
        if named:
            error.fix = "CTK_SITE is set to this file: set it to another file, or unset it."
        raise
    file.check_keys(file.content, _KEYS)
    texts = {
        key: Setting(value, str(path))
        for key in ("runtime", "work_area", "mirror", "help")
        if (value := file.get(file.content, key, str)) is not None
    }
    cores = file.get(file.content, "cores", int)
    if cores is not None and cores < 1:
        file.fail("cores", f"should be at least 1, not {cores}")
    layers = file.get(file.content, "layers", bool)
    return Site(
        **texts,
        cores=None if cores is None else Setting(cores, str(path)),
        layers=None if layers is None else Setting(layers, str(path)),
    )
