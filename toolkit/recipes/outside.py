"""What the `[[files]]` of a recipe take from outside its project, and what is private of all that they take.

A recipe may come with a cloned repository, and images are shared: no key may be copied into one unnoticed. The project
is the directory that holds the recipe's `defs/` (for a shipped recipe ctk's own): what lies there came with the recipe.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.paths import home
from toolkit.support.processes import visible_command
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.recipes.model import Recipe

# Where programs keep keys, tokens and passwords. What has such a name is private in any directory and with any mode.
CREDENTIALS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".password-store", ".local/share/keyrings"),
    *(".netrc", ".pgpass", ".my.cnf", ".git-credentials", ".pypirc", ".vault-token", ".bash_history", ".zsh_history"),
    *(".config/gcloud", ".config/gh", ".config/git/credentials", ".config/pip", ".config/rclone", ".config/uv", ".pip"),
    *(".docker/config.json", ".apptainer", ".singularity", ".kaggle", ".huggingface", ".cache/huggingface/token"),
)
CREDENTIALS_OF_HOST = ("/etc/shadow", "/etc/gshadow", "/etc/munge", "/etc/ssl/private")
_CREDENTIALS = re.compile(
    rf"(?:.*/(?:{'|'.join(map(re.escape, CREDENTIALS))})|{'|'.join(map(re.escape, CREDENTIALS_OF_HOST))})(?:/|\Z)",
    re.DOTALL,
)
_MAX_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Private:
    """A path that is private, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Copied:
    """A file or directory that `files[number]` of a recipe copies, free of symlinks, and what is private of it."""

    number: int
    path: Path
    outside: bool
    private: tuple[Private, ...] = ()

    @property
    def to_allow(self) -> Path:
        """What `--allow-file` has to name: the one private path in it, else the whole."""
        return self.private[0].path if len(self.private) == 1 else self.path


def copied_files(recipe: Recipe) -> tuple[Copied, ...]:
    """What the files of `recipe` take from outside its project, or is private; what its symlinks lead to as well."""
    project = Path(os.path.realpath(recipe.path.parent.parent))
    found = []
    for number, copy in enumerate(recipe.files, 1):
        for root in file_roots(copy.source):
            outside = not root.is_relative_to(project)
            private = tuple(_private_below(root, project))
            if outside or private:
                found.append(Copied(number, root, outside, private))
    return tuple(found)


def file_roots(source: Path) -> list[Path]:
    """The file or directory itself, and all that the symlinks below it lead to.

    The runtime follows each of them: it copies with `cp -fLr` (apptainer, internal/pkg/build/files/copy.go).
    """
    roots: list[Path] = []
    waiting = [Path(os.path.realpath(source))]
    while waiting:
        root = waiting.pop(0)
        if root.exists() and not any(root.is_relative_to(other) for other in roots):
            roots.append(root)
            waiting += [Path(os.path.realpath(path)) for path, mode in _below(root) if stat.S_ISLNK(mode)]
    return roots


def require_targets(recipe: Recipe) -> None:
    """Raise WrongInput (`dangling-symlink`) if a symlink that a build would copy leads to nothing: `cp` would fail."""
    found = (entry for copy in recipe.files for root in file_roots(copy.source) for entry in _below(root))
    for path, mode in found:
        if stat.S_ISLNK(mode) and os.path.lexists(path) and not os.path.exists(path):  # noqa: PTH110 - Path.exists fails where it may not look
            raise WrongInput(
                f"{recipe.path}: [[files]] copies {path}, a symlink to {path.readlink()}, which does not exist",
                fix="Remove the link, or copy only the files that are needed.",
                code="dangling-symlink",
            )


def _below(root: Path) -> Iterator[tuple[Path, int]]:
    """`root` and all that is below it, with its mode; symlinks are not followed. What disappears meanwhile is none."""
    walked = (
        Path(directory, name)
        for directory, directories, files in os.walk(root)
        for name in sorted((*directories, *files))
    )
    for path in chain([root], walked):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        yield path, mode


def _private_below(root: Path, project: Path) -> Iterator[Private]:
    """What is private of `root`: it as a whole, else single files and directories below it."""
    own_home = home()
    # A home directory is often private as a whole, which does not make each file in it private.
    public = {project, *project.parents, *([Path(os.path.realpath(own_home))] if own_home else [])}
    public |= {parent for path in public for parent in path.parents}
    for path in (root, *root.parents):
        if path not in public and (reason := why_private(path, _mode_of(path), project)):
            yield Private(root, reason if path == root else f"{path} has {reason}")
            return
    found: set[Path] = set()
    for path, mode in _below(root):
        if path in public or (found and found & set(path.parents)):
            continue
        if reason := why_private(path, mode, project):
            found.add(path)
            yield Private(path, reason)


def _mode_of(path: Path) -> int:
    """The mode of what `path` leads to; one that is not private if it is gone."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return stat.S_IFREG | 0o644


def why_private(path: Path, mode: int, project: Path) -> str | None:
    """Why a file or directory is private, or None: its name, or, outside the project, that only its owner may read."""
    if _CREDENTIALS.match(str(path)):
        return "a name used for credential files"
    if path.is_relative_to(project) or stat.S_ISLNK(mode):
        return None
    for_others = 0o055 if stat.S_ISDIR(mode) else 0o044
    return None if mode & for_others else f"mode {stat.S_IMODE(mode):04o}"


def without_allowed(copied: Iterable[Copied], allow: Iterable[Path]) -> tuple[Copied, ...]:
    """`copied`, where nothing that `allow` names, or that is below it, counts as private."""
    places = [Path(os.path.realpath(path)) for path in allow]
    rest = (
        replace(
            file,
            private=tuple(
                path for path in file.private if not any(path.path.is_relative_to(place) for place in places)
            ),
        )
        for file in copied
    )
    return tuple(file for file in rest if file.outside or file.private)


def judge_base(recipe: Recipe) -> tuple[Finding, ...]:
    """A warning if the recipe's own base is a file outside its project: all its contents go into the image."""
    base = recipe.base
    if not base.is_local:
        return ()
    path = Path(os.path.realpath(base.path))
    if path.is_relative_to(os.path.realpath(recipe.path.parent.parent)):
        return ()
    words = f"the base {base.name} is {path}, which is outside the project"
    return (Finding("base-outside-project", Severity.WARNING, words),)


def judge_copies(copied: Iterable[Copied]) -> tuple[Finding, ...]:
    """A line for each."""
    return tuple(map(_finding, copied))


def _finding(file: Copied) -> Finding:
    words = f"files[{file.number}] copies {file.path}{', which is outside the project' if file.outside else ''}"
    if not file.private:
        return Finding("file-outside-project", Severity.WARNING, words)
    shown = [f"{'' if private.path == file.path else f'{private.path}: '}{private.reason}" for private in file.private]
    more = [count(len(shown) - _MAX_SHOWN, "other")] if len(shown) > _MAX_SHOWN else []
    words += f"; private ({', '.join([*shown[:_MAX_SHOWN], *more])}): `ctk build` needs {_options([file])}"
    return Finding("private-file", Severity.WARNING, words)


def _options(copied: Iterable[Copied]) -> str:
    paths = dict.fromkeys(str(file.to_allow) for file in copied)
    return visible_command([word for path in paths for word in ("--allow-file", path)])


def require_allowed(recipe: Recipe, copied: Iterable[Copied]) -> None:
    """Raise WrongInput if something of `copied` is private, with the options to type."""
    private = [file for file in copied if file.private]
    if private:
        paths = ", ".join(str(path) for path in dict.fromkeys(file.to_allow for file in private))
        raise WrongInput(
            f"{recipe.path}: [[files]] would copy private files into the image: {paths}",
            fix=f"If you want them in the image, add {_options(private)}",
            code="private-file",
        )
