"""What `[[files]]` copy, readable in the image: a host with a umask of 077 would give others an image that fails."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.definitions.quoting import shell_word
from toolkit.recipes.outside import copied_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from toolkit.recipes.model import FileCopy, Recipe


def make_readable(recipe: Recipe, staged: Mapping[int, str]) -> list[str]:
    """Shell commands over the staged files, none where all files are readable for others on the host.

    `staged` are the paths of the copies by the number of the file. What is private of them (toolkit.recipes.outside)
    was allowed into the image on purpose, and stays its owner's.
    """
    private: dict[int, list[Path]] = {}
    for copied in copied_files(recipe):
        private.setdefault(copied.number, []).extend(file.path for file in copied.private)
    return [
        line
        for number, path in staged.items()
        if _has_closed(recipe.files[number - 1].source)
        for line in _lines(recipe.files[number - 1], path, private.get(number, []))
    ]


def _has_closed(source: Path) -> bool:
    """Whether anything that is copied from `source` cannot be read by others. Symlinks are followed, as by `cp -L`."""
    return any(_is_closed(path) for path in _below(source))


def _below(source: Path) -> Iterator[Path]:
    yield source
    for directory, directories, files in os.walk(source):
        yield from (Path(directory, name) for name in (*directories, *files))


def _is_closed(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:  # a symlink that leads nowhere
        return False
    wanted = 0o055 if stat.S_ISDIR(mode) else 0o044
    return mode & wanted != wanted


def _lines(copy: FileCopy, staged: str, private: list[Path]) -> Iterator[str]:
    real = Path(os.path.realpath(copy.source))
    if any(not path.is_relative_to(real) or path == real for path in private):
        return  # private as a whole, or through a symlink: all keeps the modes of the host
    yield f"chmod -R a+rX {_word(staged)}"
    for path in private:
        yield f"chmod -R go= {_word(f'{staged}/{path.relative_to(real)}')}"


def _word(path: str) -> str:
    return shell_word(path, "a path in [[files]]")
