"""Copies of the files of a recipe. A recipe may come with a cloned repository: no symlink of its is followed.

A copy is an ordinary file: behind a link, a private key would be copied without the `--allow-file` that the link needs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.files import open_regular, refuse_link, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def copy_files(copies: Mapping[Path, Path], origin: Path, destination: Path) -> None:
    """Copy files and directories of `origin` to their new paths in `destination`; those that are there are replaced.

    Nothing is written if one is refused. Raises WrongInput for `..` and symlinks in a path below the two directories,
    for what is neither a file nor a directory, and for a file where a directory should be, or the reverse.
    """
    planned: dict[Path, Path] = {}
    for source, target in copies.items():
        for path in _steps(source, origin):
            _refuse_source_link(path)
        for path in [*_steps(target, destination)][:-1]:
            _refuse_target(path, is_directory=True)
        for path in _tree(target):
            refuse_link(path)
        for path in _tree(source):
            _refuse_source(path)
            planned[path] = target / path.relative_to(source)
    for path, target in planned.items():
        _refuse_target(target, is_directory=path.is_dir())
    for path, target in planned.items():
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_regular(path) as file:
            write_atomically(target, file, mode=os.fstat(file.fileno()).st_mode & 0o777)


def _steps(path: Path, directory: Path) -> Iterator[Path]:
    """What leads from `directory` to `path`, which is the last."""
    for part in path.relative_to(directory).parts:
        if part == "..":
            raise WrongInput(f"{path} contains `..`", fix="Write the path without `..`.", code="wrong-file")
        directory /= part
        yield directory


def _tree(path: Path) -> Iterator[Path]:
    """`path` and all that is below it, parents first; links are not followed. Not recursive: it may be deep."""
    waiting = [path]
    while waiting:
        path = waiting.pop()
        yield path
        if path.is_dir() and not path.is_symlink():
            waiting += sorted(path.iterdir(), reverse=True)


def _refuse_source(path: Path) -> None:
    _refuse_source_link(path)
    if path.is_dir():
        return
    try:
        open_regular(path).close()
    except OSError as error:
        raise WrongInput(f"cannot copy {path}: {error.strerror}") from error


def _refuse_source_link(path: Path) -> None:
    if path.is_symlink():
        raise WrongInput(
            f"{path} is a symlink to {os.path.realpath(path)}: the files of a recipe are not copied through symlinks",
            fix="Replace the symlink with the file that it leads to, or remove it from the recipe.",
            code="link-in-recipe",
        )


def _refuse_target(path: Path, *, is_directory: bool) -> None:
    refuse_link(path)
    if path.exists() and path.is_dir() != is_directory:
        what = "is not a directory" if is_directory else "is a directory"
        raise WrongInput(f"cannot write {path}: it exists and {what}", fix="Choose another name, or move it away.")
