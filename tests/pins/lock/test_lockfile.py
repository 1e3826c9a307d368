"""The lock as text: read back as it was written, the same each time, and never silently edited."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from tests.examples import examples
from tests.pins.locks import COMMIT, SHA, SMALL, locks
from toolkit.pins.lock.lockfile import dump_lock, load_lock, write_lock
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.lock.model import Lock


@examples(150)
@given(lock=locks)
def test_what_is_read_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, lock: Lock) -> None:
    path = tmp_path_factory.mktemp("lock") / "x.lock.toml"
    path.write_text(dump_lock(lock), encoding="utf-8")
    again = load_lock(path)
    assert again == lock
    assert dump_lock(again) == path.read_text(encoding="utf-8")


def test_lock_is_written_only_if_changed(tmp_path: Path) -> None:
    path = tmp_path / "defs" / "small.lock.toml"
    assert write_lock(SMALL, path)
    assert not write_lock(SMALL, path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('version = "1.0.3"', 'version = "1.0.4"'),
        ("# Protected packages of the base.", "# Protected packages of the base!"),
        ('"torch==2.5.1+cu124"', '"torch==2.5.1+cu121"'),
        ("packages = [", "packages = [ "),
    ],
)
def test_edited_lock_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = dump_lock(SMALL)
    assert old in text
    path = tmp_path / "small.lock.toml"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(WrongInput, match="edited by hand") as caught:
        load_lock(path)
    assert caught.value.fix is not None
    assert "ctk lock small" in caught.value.fix


@pytest.mark.parametrize("text", ["", "schema = 1\n", 'schema = "ctk.lock/9"\n', "recipe =\n", "\x00"])
def test_invalid_lock_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.lock.toml"
    path.write_text(text)
    with pytest.raises(WrongInput):
        load_lock(path)


@pytest.mark.parametrize("bad", ["--index-url", "a b", "a;b", "$(x)"])
def test_a_name_that_could_be_an_option_or_a_command_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(WrongInput, match="not a valid"):
        load_lock(resigned(tmp_path, dump_lock(SMALL).replace('name = "timm"', f'name = "{bad}"', 1)))


@pytest.mark.parametrize(
    "url",
    ["git+https://git.example/o/mine@main", f"git+file:///root/mine@{SHA[:40]}", "https://x.example/mine.zip", "x"],
)
def test_without_a_file_only_a_commit_is_taken(tmp_path: Path, url: str) -> None:
    text = dump_lock(replace(SMALL, packages=(COMMIT,)))
    assert load_lock(resigned(tmp_path, text)).packages == (COMMIT,)
    with pytest.raises(WrongInput, match="not a valid"):
        load_lock(resigned(tmp_path, text.replace(str(COMMIT.url), url)))


@pytest.mark.parametrize(("key", "older"), [("held_back = [", "held-back = ["), ("[[builds]]", "[[build]]")])
def test_lock_of_other_ctk_version_asks_for_regeneration(tmp_path: Path, key: str, older: str) -> None:
    text = dump_lock(SMALL)
    assert key in text
    with pytest.raises(WrongInput) as caught:
        load_lock(resigned(tmp_path, text.replace(key, older)))
    assert (caught.value.code, caught.value.fix) == ("wrong-lock", "`ctk lock x` regenerates it.")


def resigned(directory: Path, text: str) -> Path:
    """A lock with this text, whose hash says that nobody edited it."""
    body = text.partition('"\n')[2].partition('"\n')[2]
    path = directory / "x.lock.toml"
    path.write_text(f'schema = "ctk.lock/1"\ncontent = "sha256:{hashlib.sha256(body.encode()).hexdigest()}"\n{body}')
    return path


@pytest.mark.parametrize(("old", "new"), [('"debootstrap"', '"docker-daemon"'), ('"recorded"', '"guessed"')])
def test_unknown_word_for_the_base_is_refused_with_its_key(tmp_path: Path, old: str, new: str) -> None:
    text = dump_lock(SMALL)
    assert old in text
    with pytest.raises(WrongInput, match=r"base\.(bootstrap|inventory): should be one of"):
        load_lock(resigned(tmp_path, text.replace(old, new, 1)))
