"""A copy of a recipe under another name, with the files that it copies into its image."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.recipes.copies import copy_files
from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from toolkit.recipes.catalogue import Catalogue


def copy_recipe(catalogue: Catalogue, like: str, name: str, *, force: bool) -> list[Path]:
    """Copy recipe `like` to `./defs/NAME.toml`, and its files to `./defs/NAME/`; return what was written.

    Files of a user's own recipe that are not in the directory of its name are used by both. Raises WrongInput if
    something of that name exists, unless `force` is given, and for each symlink in the way, before anything is written.
    """
    import tomlkit

    path = catalogue.path_of(like)
    catalogue.recipe(like)  # one that cannot be read is not copied
    document = tomlkit.parse(read_toml(path).text)
    copies: dict[Path, Path] = {}
    for entry in document.get("files", []):
        source = Path(str(entry["from"]))
        new = _renamed(source, like, name)
        old, target = path.parent / source, catalogue.own / new
        if source.is_absolute() or str(source).startswith(("~", "../")) or old == target:
            continue  # it names the same file in the copy
        copies[old] = target
        entry["from"] = str(new)
    own = catalogue.own / f"{name}.toml"
    for target in (own, *copies.values()):
        _refuse_existing(target, force=force)
    copy_files(copies, path.parent, catalogue.own)
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
