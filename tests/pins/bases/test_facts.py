"""What is read of a base before packages are chosen for it; the registry's side is in tests/real."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.pins.bases.facts import content_digest, gather_facts
from toolkit.pins.index.uv import Uv
from toolkit.pins.locking import make_lock
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import WrongInput


def base_of(directory: Path, *files: str) -> Base:
    """A sandbox with empty files."""
    for file in files:
        (directory / file).parent.mkdir(parents=True, exist_ok=True)
        (directory / file).touch()
    return Base(name="mine", reference=str(directory), bootstrap="localimage")


def test_a_base_without_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="the base mine has no Python") as caught:
        gather_facts(base_of(tmp_path / "base", "bin/sh"), tmp_path, architecture="x86_64")
    assert "python3-pip" in str(caught.value.fix)


def test_a_base_with_musl_is_refused(tmp_path: Path) -> None:
    files = ("lib/ld-musl-x86_64.so.1", "usr/bin/python3.12", "usr/lib/python3.12/os.py")
    with pytest.raises(WrongInput, match="musl instead of glibc"):
        gather_facts(base_of(tmp_path / "base", *files), tmp_path, architecture="x86_64")


def test_over_a_free_threaded_python_no_package_is_chosen(tmp_path: Path) -> None:
    base = base_of(tmp_path / "base", "usr/bin/python3.13t", "usr/lib/python3.13t/os.py")
    facts = gather_facts(base, tmp_path, architecture="x86_64")
    uv = Uv("no-such-program", tmp_path, tmp_path)
    with pytest.raises(WrongInput, match=r"free-threaded Python 3\.13t"):
        make_lock(uv, Recipe("x", Path("x.toml"), base, packages=("numpy",)), facts)


def test_the_digest_of_a_directory_is_that_of_its_names_modes_and_contents(tmp_path: Path) -> None:
    directory = tmp_path / "base"
    base_of(directory, "a", "b/c")
    (directory / "link").symlink_to("a")
    digests = [content_digest(directory, tmp_path)]
    assert digests == [content_digest(directory, tmp_path)]
    (directory / "a").write_text("x")
    digests.append(content_digest(directory, tmp_path))
    (directory / "a").chmod(0o700)
    digests.append(content_digest(directory, tmp_path))
    (directory / "link").unlink()
    (directory / "link").symlink_to("b")
    digests.append(content_digest(directory, tmp_path))
    (directory / "b/c").rename(directory / "b/d")
    digests.append(content_digest(directory, tmp_path))
    assert len(set(digests)) == 5
