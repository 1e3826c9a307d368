"""Requirements that name a repository: a commit identifies its content, as a hash does.

Sources: pip's documentation, "VCS Support"; gitrevisions(7).
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_REPOSITORY = re.compile(r"(?:git|hg|svn|bzr)\+")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PART_OF_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[([A-Za-z0-9._,-]*)\])?")


def is_repository(url: str | None) -> bool:
    """Whether an address of a requirement (`NAME @ ADDRESS`) names a repository, of whatever version control."""
    return url is not None and _REPOSITORY.match(url) is not None


def why_unlockable(url: str) -> tuple[str, str] | None:
    """Why a lock cannot hold this repository, and the fix; None for one commit of git over https.

    A branch, a tag or a short commit may move to another commit.
    """
    parts = urlsplit(url)
    path, _, revision = parts.path.rpartition("@") if "@" in parts.path else (parts.path, "", "")
    address = f"{parts.scheme.removeprefix('git+')}://{parts.netloc.rpartition('@')[2]}{path}"
    if parts.scheme not in ("git+https", "git+http") or not parts.hostname:
        return (
            "is not a git repository over https, and a build cannot use your SSH keys",
            "Name it as NAME @ git+https://SERVER/PATH@COMMIT.",
        )
    if "@" in parts.netloc:
        return (
            "contains a user name or a password, which must not be stored in an image",
            "Remove them: a build can fetch only public repositories.",
        )
    if _COMMIT.fullmatch(revision):
        return None
    if _PART_OF_COMMIT.fullmatch(revision):
        return (
            f"names no commit to lock: {revision} may move to another commit",
            "Write the commit in full, in lower-case letters: `git rev-parse COMMIT` prints it in a clone.",
        )
    wanted = revision or "HEAD"
    what = f"{wanted} may move to another commit" if revision else "it has no commit"
    return (
        f"names no commit to lock: {what}",
        f"`git ls-remote {address} {wanted} '{wanted}^{{}}'` prints it, that of a tag on the last line: "
        f"NAME @ git+{address}@COMMIT.",
    )


def with_name(line: str) -> str:
    """`git+https://…@COMMIT#egg=NAME`, the old form of pip, in the current form; any other line unchanged."""
    egg = _EGG.search(line)
    if egg is None or not _REPOSITORY.match(line):
        return line
    extras = f"[{egg[2]}]" if egg[2] else ""
    rest = line.replace(egg[0], "#" if egg[0].startswith("#") else "", 1).replace("#&", "#")
    return f"{egg[1]}{extras} @ {re.sub(r'#(?=$|[ ;])', '', rest)}"
