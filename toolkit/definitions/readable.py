"""What `[[files]]` copy, readable in the image: a host with a umask of 077 would give others an image that fails."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.definitions.quoting import shell_word
from toolkit.recipes.outside import copied_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.recipes.model import FileCopy, Recipe


def make_readable(recipe: Recipe) -> list[str]:
    """Lines for the beginning of `%post`, none where all files are readable for others on the host.

    What is private of them (toolkit.recipes.outside) was allowed into the image on purpose, and stays its owner's.
    """
    private: dict[int, list[Path]] = {}
    for copied in copied_files(recipe):
        private.setdefault(copied.number, []).extend(file.path for file in copied.private)
    return [
        line
        for number, copy in enumerate(recipe.files, 1)
        if _has_closed(copy.source)
        for line in _lines(copy, private.get(number, []))
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


def _lines(copy: FileCopy, private: list[Path]) -> Iterator[str]:
    """The runtime copies as `cp -r` does: into a directory that is there already, else to the target itself."""
    real = Path(os.path.realpath(copy.source))
    if any(not path.is_relative_to(real) or path == real for path in private):
        return  # private as a whole, or through a symlink: all keeps the modes of the host
    name = copy.source.name
    inside = name
    while (copy.source / inside).exists():  # src/src: the inner one does not show that the outer one was copied into
        inside = f"{inside}/{name}"
    word = "a path in [[files]]"
    target, probe = (shell_word(text, word) for text in (copy.target, f"{copy.target}/{inside}"))
    into = shell_word(f"{copy.target}/{name}", word)
    yield f"copied={target}; [ ! -e {probe} ] || copied={into}"
    yield 'chmod -R a+rX "$copied"'
    for path in private:
        yield f'chmod -R go= "$copied"/{shell_word(str(path.relative_to(real)), word)}'
