"""Whether other users own the recipes that a command reads: a build runs the commands of whoever can write them.

Nothing is refused: directories of projects are shared. The recipes that come with ctk are not judged: ctk itself
belongs to the same user. Only the owner is read, which root squashing on NFS does not change.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from toolkit.support.findings import Finding, Severity
from toolkit.support.ownership import is_trusted, user_name
from toolkit.support.text import count

if TYPE_CHECKING:
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
