"""Whether other users own the recipes and images that a command uses: it runs what those users put there.

Nothing is refused: directories of projects are shared. The recipes that come with ctk are not judged: ctk itself
belongs to the same user. Of a group's permissions nothing is said. Root squashing on NFS does not change an owner.
"""

from __future__ import annotations

import contextlib
import stat
from collections import defaultdict
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity
from toolkit.support.ownership import is_trusted, user_name
from toolkit.support.processes import command_line
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from toolkit.recipes.catalogue import Catalogue


def judge_owners(catalogue: Catalogue, name: str) -> tuple[Finding, ...]:
    """A warning for each other user who owns `./defs`, or the recipe `name`, its lock or the bases in it."""
    if catalogue.own == catalogue.shipped or catalogue.own.resolve() == catalogue.shipped.resolve():
        return ()
    found: defaultdict[int, list[Path]] = defaultdict(list)
    for path in _read(catalogue.own, name):
        owner = path.stat().st_uid
        if not is_trusted(owner):
            found[owner].append(path)
    return tuple(_finding(user_name(owner), paths) for owner, paths in found.items())


def judge_image(image: Path, user: str) -> tuple[Finding, ...]:
    """A warning if another user owns an image, or any user can change or replace it. `user` is what runs its programs.

    A sandbox is judged by its directory.
    """
    return tuple(_doubts(image, user))


def _doubts(image: Path, user: str) -> Iterator[Finding]:
    with contextlib.suppress(OSError):  # whoever uses the image says it
        link, status, parent = image.lstat(), image.stat(), image.resolve().parent
        owner = next((found.st_uid for found in (link, status) if not is_trusted(found.st_uid)), None)
        if owner is not None:
            what = "is a symlink of" if not is_trusted(link.st_uid) and stat.S_ISLNK(link.st_mode) else "belongs to"
            yield Finding(
                "image-of-another-user",
                Severity.WARNING,
                f"{image} {what} {user_name(owner)}, not to you or root: {user} runs what that user put there",
                "Use it only if you trust that user, who can also change it later.",
            )
        open_to_all = image if status.st_mode & stat.S_IWOTH else parent
        if open_to_all.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
            yield Finding(
                "image-open-to-others",
                Severity.WARNING,
                f"{open_to_all} is writable by all users: any user can change what {user} runs",
                f"Remove that permission: {command_line(['chmod', 'o-w', str(open_to_all)])}",
            )


def _read(own: Path, name: str) -> tuple[Path, ...]:
    """The files that are read for a recipe, after their directory; () if there are none."""
    named = [own / f"{name}.toml", own / f"{name}.lock.toml", own / "bases.toml"]
    files = [path for path in (*named, *sorted((own / "bases").glob("*.toml"))) if path.exists()]
    return (own, *files) if files else ()


def _finding(owner: str, paths: list[Path]) -> Finding:
    others = f" and {count(len(paths) - 1, 'other file')} of the recipe" if len(paths) > 1 else ""
    belong = "belong" if others else "belongs"
    message = f"{paths[0]}{others} {belong} to {owner}, not to you or root: a build runs the commands of that user"
    return Finding("recipe-of-another-user", Severity.WARNING, message, "Read the recipe before you build it.")
