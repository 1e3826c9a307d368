"""The modes of copied files: readable in the image whatever the umask of the host, unless they are private."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

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


def modes_after(directory: Path, source: Path) -> dict[str, int]:
    """The modes in the image after the runtime copied and the commands of the step ran."""
    staged = directory / "staged" / source.name
    shutil.copytree(source, staged)
    lines = make_readable(recipe(directory, source, "/opt/x"), {1: str(staged)})
    subprocess.run(["sh", "-eu", "-c", "\n".join(lines)], check=True)
    return {str(path.relative_to(staged)): path.stat().st_mode & 0o777 for path in (staged, *staged.rglob("*"))}


def test_all_that_was_copied_becomes_readable(tmp_path: Path) -> None:
    found = modes_after(tmp_path, made(tmp_path, "a", "deep/b"))
    assert found == {".": 0o755, "a": 0o644, "deep": 0o755, "deep/b": 0o644}


def test_what_is_private_stays_its_owner_s(tmp_path: Path) -> None:
    source = made(tmp_path, "open", ".netrc", ".ssh/id")
    found = modes_after(tmp_path, source)
    assert (found["open"], found[".netrc"], found[".ssh"], found[".ssh/id"]) == (0o644, 0o600, 0o700, 0o600)
    assert make_readable(recipe(tmp_path, source / ".netrc", "/opt/key"), {1: "/staged"}) == []


def test_what_is_readable_needs_no_command(tmp_path: Path) -> None:
    source = made(tmp_path, "a", mode=0o644)
    (source / "dangling").symlink_to("nowhere")
    assert make_readable(recipe(tmp_path, source, "/opt/x"), {1: "/staged"}) == []


def test_the_lines_stand_in_the_definition(tmp_path: Path) -> None:
    source = tmp_path / "file"
    for mode in (0o644, 0o600):
        source.touch()
        source.chmod(mode)
        text = define(recipe(tmp_path, source, "/opt/my file")).text
        assert ("    chmod -R a+rX /.ctk-files/1/file\n" in text) is (mode == 0o600)
