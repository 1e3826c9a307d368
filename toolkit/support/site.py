"""The site's settings for all its users: `/etc/ctk/site.toml`, or the file that CTK_SITE names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolkit.support.errors import WrongInput
from toolkit.support.quantities import parse_size
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.support.tomlfile import TomlFile

T = TypeVar("T")
_DEFAULT = Path("/etc/ctk/site.toml")
_LEAST_MEMORY = 64 << 20  # bytes; mksquashfs 4.5.1 refuses less than 16 MiB


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
    memory: bytes of memory that packing an image may use there. layers: whether `ctk build` may make layered images;
    false if compute nodes do not mount them. stores: shared stores, each may contain $USER etc. store_owners: login
    names of the users whose files in a shared store are used. cache_keep: bytes that a user's own store may use. help:
    whom to ask (an address or a page). cluster: name of the cluster profile of jobs. profiles: a directory of cluster
    profiles, may contain $USER etc.
    """

    runtime: Setting[str] | None = None
    work_area: Setting[str] | None = None
    mirror: Setting[str] | None = None
    cores: Setting[int] | None = None
    layers: Setting[bool] | None = None
    help: Setting[str] | None = None
    memory: Setting[int] | None = None
    stores: Setting[tuple[str, ...]] | None = None
    store_owners: Setting[tuple[str, ...]] | None = None
    cache_keep: Setting[int] | None = None
    cluster: Setting[str] | None = None
    profiles: Setting[str] | None = None


SITE_KEYS = (
    *("runtime", "work_area", "mirror", "cores", "layers", "help"),
    *("memory", "stores", "store_owners", "cache", "cluster", "profiles"),
)


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
    file.check_keys(file.content, SITE_KEYS)
    texts = {
        key: Setting(value, str(path))
        for key in ("runtime", "work_area", "mirror", "help", "cluster", "profiles")
        if (value := file.get(file.content, key, str)) is not None
    }
    cores = file.get(file.content, "cores", int)
    if cores is not None and cores < 1:
        file.fail("cores", f"should be at least 1, not {cores}")
    layers = file.get(file.content, "layers", bool)
    if "profiles" in texts and not texts["profiles"].value.startswith(("/", "~", "$")):
        file.fail("profiles", f"should be the absolute path of a directory, not {texts['profiles'].value!r}")
    for text in file.get_texts(file.content, "stores"):
        if not text.startswith(("/", "~", "$")):
            file.fail("stores", f"should be a list of absolute paths, but contains {text!r}")
    return Site(
        **texts,
        cores=None if cores is None else Setting(cores, str(path)),
        layers=None if layers is None else Setting(layers, str(path)),
        memory=_memory_in(file),
        stores=_texts_in(file, "stores"),
        store_owners=_texts_in(file, "store_owners"),
        cache_keep=cache_keep_in(file),
    )


def _texts_in(file: TomlFile, key: str) -> Setting[tuple[str, ...]] | None:
    return Setting(file.get_texts(file.content, key), str(file.path)) if key in file.content else None


def _memory_in(file: TomlFile) -> Setting[int] | None:
    size = _size(file, file.content, "memory")
    if size is None:
        return None
    if size < _LEAST_MEMORY:
        file.fail("memory", f"should be at least 64M, not {file.content['memory']!r}")
    return Setting(size, str(file.path))


def cache_keep_in(file: TomlFile) -> Setting[int] | None:
    """`keep` in the table `[cache]` of a user's or a site's file. Raises WrongInput."""
    table = file.get(file.content, "cache", dict)
    if table is None:
        return None
    file.check_keys(table, ("keep",), "cache.")
    size = _size(file, table, "keep", "cache.")
    return None if size is None else Setting(size, str(file.path))


def _size(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str = "") -> int | None:
    fix = f'For example: {key} = "50G"'
    text = file.get(table, key, str, prefix, fix=fix)
    try:
        return None if text is None else parse_size(text, "the value")
    except WrongInput as error:
        file.fail(f"{prefix}{key}", error.message, fix=fix)
