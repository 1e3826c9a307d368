"""Repositories in lists of requirements: the archive of one commit has a hash, a branch has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.repositories import with_archive
from toolkit.pins.wishlists import read_requirements
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("line", "archive"),
    [
        (f"x @ git+https://github.com/o/r.git@{COMMIT}", f"x @ https://github.com/o/r/archive/{COMMIT}.zip"),
        (
            f"x[a]@git+https://gitlab.com/o/g/r@{COMMIT} ; python_version > '3'",
            f"x[a] @ https://gitlab.com/o/g/r/-/archive/{COMMIT}/archive.zip ; python_version > '3'",
        ),
        (f"git+https://codeberg.org/o/r@{COMMIT}#egg=x", f"x @ https://codeberg.org/o/r/archive/{COMMIT}.zip"),
        (f"git+https://github.com/o/r@{COMMIT}", None),
        ("x @ git+https://github.com/o/r@main", None),
        ("x @ git+https://github.com/o/r", None),
        (f"x @ git+https://ann:secret@github.com/o/r@{COMMIT}", None),
        (f"x @ git+https://git.example/o/r@{COMMIT}", None),
        (f"x @ git+https://github.com/o/r@{COMMIT}#subdirectory=python", None),
        ("numpy<2", None),
    ],
)
def test_only_a_commit_of_a_known_forge_has_an_archive(line: str, archive: str | None) -> None:
    assert with_archive(line) == archive


def test_list_takes_the_archive_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(f"x @ git+https://github.com/o/r@{COMMIT}\ny @ git+https://github.com/o/r@main\n")
    found = read_requirements(path)
    assert found.requirements == (f"x @ https://github.com/o/r/archive/{COMMIT}.zip",)
    assert [line for line, _ in found.left_out] == ["y @ git+https://github.com/o/r@main"]
    assert [one.code for one in found.notes] == ["archive-of-commit"]
    assert [one.severity for one in found.findings()] == [Severity.WARNING, Severity.INFO]
