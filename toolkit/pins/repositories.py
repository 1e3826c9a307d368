"""Requirements that name a repository: the archive of one commit in its place, which has a hash to lock."""

from __future__ import annotations

import re

from packaging.requirements import InvalidRequirement, Requirement

# Where the forges serve the archive of a commit.
_ARCHIVES = {
    "github.com": "/archive/{commit}.zip",
    "gitlab.com": "/-/archive/{commit}/archive.zip",
    "codeberg.org": "/archive/{commit}.zip",
}
_REPOSITORY = re.compile(r"git\+https://([a-z.]+)(/[\w.-]+(?:/[\w.-]+)+)/?@([0-9a-f]{40})(?:#(.*))?")


def with_archive(line: str) -> str | None:
    """`NAME @ git+https://github.com/…@COMMIT` with the archive of that commit; None for what has none.

    A branch, a tag and a short commit are no such address: they may mean another commit tomorrow.
    """
    name, _, bare = line.partition("@") if not line.startswith("git+") else ("", "", line)
    found = _REPOSITORY.fullmatch(bare.partition(" ;")[0].strip())
    if found is None or found[1] not in _ARCHIVES or "subdirectory=" in (found[4] or ""):
        return None
    egg = re.search(r"(?:^|&)egg=([A-Za-z0-9._-]+)", found[4] or "")
    name = name.strip() or (egg[1] if egg else "")
    _, semicolon, marker = line.partition(" ;")
    archive = f"https://{found[1]}{found[2].removesuffix('.git')}{_ARCHIVES[found[1]].format(commit=found[3])}"
    made = f"{name} @ {archive}{f' ; {marker.strip()}' if semicolon else ''}"
    try:
        Requirement(made)
    except InvalidRequirement:
        return None
    return made
