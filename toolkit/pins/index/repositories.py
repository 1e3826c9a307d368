"""Requirements that name a repository: a commit identifies its content, as a hash does.

Sources: pip's documentation, "VCS Support"; gitrevisions(7).
"""

from __future__ import annotations

import posixpath
import re
import tempfile
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from toolkit.pins.index.answers import git_refusal
from toolkit.support.certificates import certificate_problem, trusting
from toolkit.support.errors import CheckFailed, ProgramFailed
from toolkit.support.processes import Completed, run

if TYPE_CHECKING:
    from pathlib import Path

_REPOSITORY = re.compile(r"(?:git|hg|svn|bzr)\+")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PART_OF_COMMIT = re.compile(r"[0-9a-fA-F]{7,64}")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[([A-Za-z0-9._,-]*)\])?")
# Set if ctk runs in a git hook of the user's repository, which must not be used here.
_NOT_OURS = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"),
)
_TIMEOUT_SECONDS = 300.0


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


def read_repository(url: str, names: tuple[str, ...], scratch: Path) -> dict[str, str | None]:
    """The text of some files of the project at a commit, `git+https://…@COMMIT[#subdirectory=…]`; None: not there.

    Nothing of the repository is run or checked out. Raises MissingOnHost without git, ProgramFailed if the commit
    cannot be fetched, CheckFailed if the repository does not have it.
    """
    parts = urlsplit(url)
    path, _, commit = parts.path.rpartition("@")
    address = f"{parts.scheme.removeprefix('git+')}://{parts.netloc}{path}"
    subdirectory = parse_qs(parts.fragment).get("subdirectory", [""])[0].strip("/")
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="git-", dir=scratch) as directory:

        def git(*arguments: str) -> Completed:
            argv = ["git", f"--git-dir={directory}", *arguments]
            return run(argv, env={**dict.fromkeys(_NOT_OURS), **git_settings()}, cwd=scratch, timeout=_TIMEOUT_SECONDS)

        git("init", "--quiet", "--bare").require("preparing a repository")
        if not git("fetch", "--quiet", "--depth=1", "--", address, commit).ok:
            # A server that only sends what a branch or a tag names.
            fetched = git("fetch", "--quiet", "--", address, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
            if not fetched.ok:
                raise unreachable(url, fetched.stderr)
        if not git("cat-file", "-e", f"{commit}:{subdirectory}").ok:
            what = f"directory {subdirectory} in the commit {commit}" if subdirectory else f"commit {commit}"
            raise CheckFailed(f"{address} has no {what}", fix="Correct the requirement.", code="no-such-commit")
        shown = {name: git("show", f"{commit}:{posixpath.join(subdirectory, name)}") for name in names}
        return {name: answer.stdout if answer.ok else None for name, answer in shown.items()}


def unreachable(url: str, output: str) -> ProgramFailed:
    """The error for a commit, `git+https://…@COMMIT`, that git could not fetch; `output` is what git printed."""
    meaning, fix = certificate_problem(output) or git_refusal(output) or ("", None)
    return ProgramFailed(
        f"the repository cannot be fetched: {url.removeprefix('git+')}{f' ({meaning})' if meaning else ''}",
        fix=fix
        or "Check address and commit; `git ls-remote` tries the address. A build can fetch only public repositories.",
        code="repository-unreachable",
        last_lines=tuple(output.strip().splitlines()[-6:]),
    )


def git_settings() -> dict[str, str]:
    """Variables that keep git from prompting and make it trust the host's certificates."""
    trust = trusting()
    certificates = {"GIT_SSL_CAINFO": trust["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in trust else {}
    return {"GIT_TERMINAL_PROMPT": "0", **certificates}
