"""The modes of copied files: readable in the image whatever the umask of the host, unless they are private."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from toolkit.definitions.definition import define
from toolkit.definitions.readable import make_readable
from toolkit.recipes.model import Base, FileCopy, Recipe

if TYPE_CHECKING:
    from pathlib import Path


def recipe(directory: Path, source: Path, target: str) -> Recipe:
    path = directory / "defs/r.toml"
    return Recipe("r", path, Base("b", "docker", "a/b:1"), files=(FileCopy(source, target),))


def made(directory: Path, *names: str, mode: int = 0o600) -> Path:
    source = directory / "defs/it's src"
    for name in names:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        path.chmod(mode)
    for path in (source, *source.rglob("*")):
        if path.is_dir():
            path.chmod(0o700 if mode == 0o600 else 0o755)
    return source


def modes_after(directory: Path, source: Path, target: Path) -> dict[str, int]:
    """The modes in the image after the runtime copied and the lines of `%post` ran."""
    lines = make_readable(recipe(directory, source, str(target)))
    shutil.copytree(source, target / source.name if target.is_dir() else target)
    subprocess.run(["sh", "-eu", "-c", "\n".join(lines)], check=True)
    return {str(path.relative_to(target)): path.stat().st_mode & 0o777 for path in (target, *target.rglob("*"))}


@pytest.mark.parametrize("existing", [True, False])
def test_all_that_was_copied_becomes_readable_and_nothing_else(tmp_path: Path, existing: bool) -> None:
    source, target = made(tmp_path, "a", "deep/b"), tmp_path / "image"
    prefix = ""
    if existing:
        target.mkdir(mode=0o700)
        (target / "of the base").touch(mode=0o600)
        prefix = f"{source.name}/"
    found = modes_after(tmp_path, source, target)
    assert (found[f"{prefix}a"], found[f"{prefix}deep"], found[f"{prefix}deep/b"]) == (0o644, 0o755, 0o644)
    assert not existing or (found["."], found["of the base"]) == (0o700, 0o600)


def test_a_directory_that_holds_one_of_its_own_name(tmp_path: Path) -> None:
    source = made(tmp_path, "a", "it's src/b")
    found = modes_after(tmp_path, source, tmp_path / "image")
    assert (found["."], found["a"], found["it's src/b"]) == (0o755, 0o644, 0o644)


def test_what_is_private_stays_its_owner_s(tmp_path: Path) -> None:
    source = made(tmp_path, "open", ".netrc", ".ssh/id")
    found = modes_after(tmp_path, source, tmp_path / "image")
    assert (found["open"], found[".netrc"], found[".ssh"], found[".ssh/id"]) == (0o644, 0o600, 0o700, 0o600)
    assert make_readable(recipe(tmp_path, source / ".netrc", "/opt/key")) == []


def test_what_is_readable_needs_no_post(tmp_path: Path) -> None:
    source = made(tmp_path, "a", mode=0o644)
    (source / "dangling").symlink_to("nowhere")
    assert make_readable(recipe(tmp_path, source, "/opt/x")) == []


def test_the_lines_stand_in_the_definition(tmp_path: Path) -> None:
    source = tmp_path / "file"
    for mode in (0o644, 0o600):
        source.touch()
        source.chmod(mode)
        text = define(recipe(tmp_path, source, "/opt/my file")).text
        assert ("copied='/opt/my file'" in text) is (mode == 0o600)
        assert ("%post" in text) is (mode == 0o600)
