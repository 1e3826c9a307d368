"""The values of a section: only names, versions and hashes that are safe in files and on command lines."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.pins.locks import COMMIT, SHA, SMALL
from toolkit.pins.lock.lockfile import dump_locks, load_lock
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.lock.model import Lock


def resigned(directory: Path, text: str) -> Path:
    """A lock with this text, whose hash says that nobody edited it."""
    head, _, body = re.split(r'(content = "sha256:\w+"\n)', text)
    recipe = re.search(r'recipe = "(\w+)"', head)
    assert recipe is not None
    path = directory / "x.lock.toml"
    digest = hashlib.sha256(f"{recipe[1]}\nx86_64\n{body}".encode()).hexdigest()
    path.write_text(f'{head}content = "sha256:{digest}"\n{body}')
    return path


def load(path: Path) -> Lock:
    lock = load_lock(path, "x86_64")
    assert lock is not None
    return lock


@pytest.mark.parametrize("bad", ["--index-url", "a b", "a;b", "$(x)"])
def test_a_name_that_could_be_an_option_or_a_command_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(WrongInput, match="not a valid"):
        load(resigned(tmp_path, dump_locks(SMALL).replace('name = "timm"', f'name = "{bad}"', 1)))


@pytest.mark.parametrize(
    "url",
    ["git+https://git.example/o/mine@main", f"git+file:///root/mine@{SHA[:40]}", "https://x.example/mine.zip", "x"],
)
def test_without_a_file_only_a_commit_is_taken(tmp_path: Path, url: str) -> None:
    text = dump_locks(replace(SMALL, packages=(COMMIT,)))
    assert load(resigned(tmp_path, text)).packages == (COMMIT,)
    with pytest.raises(WrongInput, match="not a valid"):
        load(resigned(tmp_path, text.replace(str(COMMIT.url), url)))


@pytest.mark.parametrize(("key", "older"), [("held_back = [", "held-back = ["), ("[[x86_64.builds]]", "[[x86_64.b]]")])
def test_lock_of_other_ctk_version_asks_for_regeneration(tmp_path: Path, key: str, older: str) -> None:
    text = dump_locks(SMALL)
    assert key in text
    with pytest.raises(WrongInput) as caught:
        load(resigned(tmp_path, text.replace(key, older)))
    assert (caught.value.code, caught.value.fix) == ("wrong-lock", "`ctk lock x --arch x86_64` regenerates it.")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"debootstrap"', '"docker-daemon"', r"x86_64\.base\.bootstrap: should be one of"),
        ('"recorded"', '"guessed"', r"x86_64\.base\.inventory: should be one of"),
        ('architecture = "x86_64"', 'architecture = "aarch64"', r"x86_64\.base\.architecture: should be x86_64"),
    ],
)
def test_wrong_word_for_the_base_is_refused_with_its_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = dump_locks(SMALL)
    assert old in text
    with pytest.raises(WrongInput, match=message):
        load(resigned(tmp_path, text.replace(old, new, 1)))
