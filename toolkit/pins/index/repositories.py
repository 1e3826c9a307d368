"""The door to git: the files of a project at one commit."""

from __future__ import annotations

import posixpath
import tempfile
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from toolkit.pins.index.answers import git_refusal
from toolkit.support.certificates import certificate_problem, trusting
from toolkit.support.errors import CheckFailed, ProgramFailed
from toolkit.support.files import make_directory
from toolkit.support.http_client import LEAST_RATE, WINDOW
from toolkit.support.processes import Completed, run_contained

if TYPE_CHECKING:
    from pathlib import Path

# Set if ctk runs in a git hook of the user's repository, which must not be used here.
_NOT_OURS = (
    *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"),
    *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"),
)
_TIMEOUT_SECONDS = 300.0
# git-config(1), http.lowSpeedLimit: bytes a second, and for how many seconds git waits for more.
_LEAST_RATE = {"GIT_HTTP_LOW_SPEED_LIMIT": str(LEAST_RATE), "GIT_HTTP_LOW_SPEED_TIME": str(int(WINDOW))}


def read_repository(url: str, names: tuple[str, ...], scratch: Path) -> dict[str, str | None]:
    """The text of some files of the project at a commit, `git+https://…@COMMIT[#subdirectory=…]`; None: not there.

    Nothing of the repository is run or checked out. Raises MissingOnHost without git, ProgramFailed if the commit
    cannot be fetched, CheckFailed if the repository does not have it.
    """
    parts = urlsplit(url)
    path, _, commit = parts.path.rpartition("@")
    address = f"{parts.scheme.removeprefix('git+')}://{parts.netloc}{path}"
    subdirectory = parse_qs(parts.fragment).get("subdirectory", [""])[0].strip("/")
    make_directory(scratch)
    with tempfile.TemporaryDirectory(prefix="git-", dir=scratch) as directory:

        def git(*arguments: str) -> Completed:
            argv = ["git", f"--git-dir={directory}", *arguments]
            environment = {**dict.fromkeys(_NOT_OURS), **git_settings()}
            return run_contained(argv, env=environment, cwd=scratch, timeout=_TIMEOUT_SECONDS)

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
    """Variables that keep git from prompting and from waiting for ever, and make it trust the host's certificates."""
    trust = trusting()
    certificates = {"GIT_SSL_CAINFO": trust["SSL_CERT_FILE"]} if "SSL_CERT_FILE" in trust else {}
    return {"GIT_TERMINAL_PROMPT": "0", **_LEAST_RATE, **certificates}
