"""A copy of a recipe under another name, with the files that it copies into its image."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically

if TYPE_CHECKING:
    from toolkit.recipes.catalogue import Catalogue


def copy_recipe(catalogue: Catalogue, like: str, name: str, *, force: bool) -> list[Path]:
    """Copy recipe `like` to `./defs/NAME.toml`, and its files to `./defs/NAME/`; return what was written.

    Files of a user's own recipe that are not in the directory of its name are used by both. Raises WrongInput if
    something of that name exists, unless `force` is given; a link is never followed.
    """
    import tomlkit

    path = catalogue.path_of(like)
    catalogue.recipe(like)  # one that cannot be read is not copied
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    copies: dict[Path, Path] = {}
    for entry in document.get("files", []):
        source = Path(str(entry["from"]))
        new = _renamed(source, like, name)
        if source.is_absolute() or str(source).startswith(("~", "../")) or (catalogue.is_own(path) and new == source):
            continue
        copies[path.parent / source] = catalogue.own / new
        entry["from"] = str(new)
    own = catalogue.own / f"{name}.toml"
    for target in (own, *copies.values()):
        _refuse_existing(target, force=force)
    for source, target in copies.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=force)
        else:
            write_atomically(target, source.read_bytes(), mode=source.stat().st_mode & 0o777)
    catalogue.own.mkdir(exist_ok=True)
    write_atomically(own, tomlkit.dumps(document), keep_mode=True)
    return [own, *copies.values()]


def _renamed(path: Path, like: str, name: str) -> Path:
    """`LIKE/train.py` becomes `NAME/train.py`; any other path stays."""
    return Path(name, *path.parts[1:]) if path.parts[:1] == (like,) else path


def _refuse_existing(path: Path, *, force: bool) -> None:
    refuse_link(path)
    if path.exists() and not force:
        raise WrongInput(f"{path} already exists", fix="Choose another name, or add --force.")
