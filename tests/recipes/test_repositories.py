"""Repositories in requirements: one commit can be locked, a branch, a tag and a private address cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from toolkit.pins.authoring.package_lists import read_requirements
from toolkit.recipes.repositories import is_repository, why_unlockable, with_name
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SERVER = "git+https://git.example/o/r"


@pytest.mark.parametrize(
    "url",
    [
        f"{SERVER}@{COMMIT}",
        f"{SERVER}.git@{COMMIT}#subdirectory=python",
        f"git+http://127.0.0.1:8080/r@{COMMIT}",
        f"{SERVER}@{COMMIT}{COMMIT[:24]}",  # a repository whose objects are named by SHA-256
    ],
)
def test_a_commit_can_be_locked(url: str) -> None:
    assert is_repository(url)
    assert why_unlockable(url) is None


@pytest.mark.parametrize(
    ("url", "why", "fix"),
    [
        (SERVER, "it has no commit", "`git ls-remote https://git.example/o/r HEAD 'HEAD^{}'`"),
        (
            f"{SERVER}@main",
            "main may move to another commit",
            "`git ls-remote https://git.example/o/r main 'main^{}'`",
        ),
        (f"{SERVER}@{COMMIT[:12]}", "may move to another commit", "in full"),
        (f"{SERVER}@{COMMIT.upper()}", "may move to another commit", "in full, in lower-case letters"),
        (f"git+https://ann:secret@git.example/o/r@{COMMIT}", "contains a user name or a password", "Remove them"),
        (f"git+ssh://git@git.example/o/r@{COMMIT}", "cannot use your SSH keys", "git+https://SERVER/PATH@COMMIT"),
        (f"git+file:///home/ann/r@{COMMIT}", "over https", "git+https://"),
        (f"hg+https://hg.example/r@{COMMIT}", "not a git repository", "git+https://"),
    ],
)
def test_requirement_without_commit_is_refused_with_fix(url: str, why: str, fix: str) -> None:
    problem = why_unlockable(url)
    assert problem is not None
    assert why in problem[0]
    assert fix in problem[1]
    assert "secret" not in "".join(problem)


@pytest.mark.parametrize(
    ("line", "today"),
    [
        (f"{SERVER}@{COMMIT}#egg=x", f"x @ {SERVER}@{COMMIT}"),
        (f"{SERVER}@{COMMIT}#egg=x[a,b]", f"x[a,b] @ {SERVER}@{COMMIT}"),
        (f"{SERVER}@{COMMIT}#egg=x&subdirectory=python", f"x @ {SERVER}@{COMMIT}#subdirectory=python"),
        (f"{SERVER}@{COMMIT}#subdirectory=python&egg=x", f"x @ {SERVER}@{COMMIT}#subdirectory=python"),
        (f"{SERVER}@{COMMIT}#egg=x ; python_version > '3'", f"x @ {SERVER}@{COMMIT} ; python_version > '3'"),
        (f"{SERVER}@{COMMIT}", f"{SERVER}@{COMMIT}"),
        ("numpy<2", "numpy<2"),
    ],
)
def test_egg_fragment_is_converted_to_pep_508(line: str, today: str) -> None:
    assert with_name(line) == today
    if line != today:
        assert why_unlockable(Requirement(today).url or "") is None


def test_list_keeps_commits_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(
        f"x @ {SERVER}@{COMMIT}\n-e {SERVER}@{COMMIT}#egg=edited\ny @ {SERVER}@main\n"
        f"z @ git+https://ann:secret@git.example/r@{COMMIT}\n{SERVER}@{COMMIT}\n"
    )
    found = read_requirements(path)
    assert found.requirements == (f"x @ {SERVER}@{COMMIT}", f"edited @ {SERVER}@{COMMIT}")
    lost = [finding for finding in found.findings() if finding.code == "left-out"]
    assert [finding.severity for finding in lost] == [Severity.WARNING] * 3
    assert any("git ls-remote" in (finding.fix or "") for finding in lost)
    assert "secret" not in str(lost)
