"""Wrong arguments of `ctk new`, `add`, `remove`, `lock`, `def` and `why`: one message, and nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("new", "Bad Name"), 2, "is not a valid recipe name"),
        (("new", "bases", "--base", "debian-12"), 2, "`bases` and names ending in"),
        (("new", "mine", "--base", "debian-12"), 2, "already exists"),
        (("new", "x"), 2, "no base could be inferred"),
        (("new", "x", "--base", "debian-13"), 2, 'Did you mean "debian-12"'),
        (("new", "x", "--from", "nothing.py"), 2, "nothing.py does not exist"),
        (("new", "x", "--from", "defs/mine.toml"), 2, "does not read defs/mine.toml"),
        (("add", "mine", "a b"), 2, "not a package requirement"),
        (("add", "mine"), 2, "no packages to add"),
        (("add", "mine", "apex"), 2, "apex on PyPI is a toolkit for the web framework Pyramid"),
        (("add", "mine", "segment_anything"), 2, "no PyPI package provides"),
        (("add", "mine", "pandas=2"), 2, "Write pandas==2"),
        (("add", "mine", "https://x.org/a-1-py3-none-any.whl"), 2, "Write a @ https://x.org/a-1-py3-none-any.whl"),
        (("add", "mine", "gcc;id", "--apt"), 2, "not the name of a Debian package"),
        (("add", "mine", "-r", "none.txt"), 2, "none.txt"),
        (("add", "mine", "-r", "empty.txt", "timm"), 2, "empty.txt has no package that a recipe can install"),
        (("add", "mine", "-r", "useless.txt"), 2, "left out: pandas>=2<3"),
        (("add", "mine", "-r", "useless.txt"), 2, "Write pandas>=2,<3: a comma is missing"),
        (("new", "x", "--from", "empty.txt"), 2, "empty.txt has no package"),
        (("new", "x", "--from", "useless.txt"), 2, "left out: --pre (a pip option)"),
        (("new", "x", "--from", "environment.yml"), 2, "environment.yml has no package"),
        (("new", "x", "--from", "pyproject.toml"), 2, "pyproject.toml has no package"),
        (("add", "mine", "pandas>=2<3"), 2, "Write pandas>=2,<3: a comma is missing"),
        (("add", "mine", "-r", "train.py", "--apt"), 2, "leave out --apt or -r"),
        (("remove", "mine", "gcc", "--apt"), 2, "does not list gcc"),
        (("def", "mine", "--locked"), 1, "has no lock"),
        (("def", "mine", "--locked", "--base", "debian-12"), 2, "leave out --base"),
        (("add", "nobody", "numpy"), 2, "no recipe"),
        (("remove", "mine", "nunpy"), 2, 'Did you mean "numpy"'),
        (("remove", "keras-bert", "nothing"), 2, "does not list"),
        (("lock", "nobody"), 2, "no recipe"),
        (("lock", "mine", "numpy"), 2, "--upgrade"),
        (("lock", "mine", "--exclude-newer", "yesterday"), 2, "should be a date such as"),
        (("lock", "mine", "--exclude-newer", "2021-13-45"), 2, "should be a date such as"),
        (("lock", "mine", "--check"), 1, "ctk lock mine"),
        (("lock", "mine", "--export", "lock.toml"), 2, "pylock.NAME.toml"),
        (("lock", "mine", "--export", "pylock.toml", "--check"), 2, "leave out --export"),
        (("lock", "mine", "--force"), 2, "--force requires --export"),
        (("why", "torch", "mine"), 2, "no lock here"),
        (("why", "torch", "small", "--arch", "x86_64", "--arch", "arm64"), 2, "takes one architecture here"),
        (("def", "mine", "--arch", "x86_64,aarch64"), 2, "takes one architecture here"),
        (("new", "x", "--base", "debian-12", "--gpu", 'V100"; rm -rf'), 2, "does not know the GPU"),
        (("new", "x", "--base", "debian-12", "--gpu", "sm_1000"), 2, "does not know the GPU 'sm_1000'"),
    ],
)
def test_wrong_input_one_message_nothing_written(
    ctk: Ctk, directory: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    (directory / "empty.txt").write_text("# nothing yet\n")
    (directory / "useless.txt").write_text("--pre\npandas>=2<3\n")
    (directory / "environment.yml").write_text("name: x\ndependencies: [python=3.11]\n")
    (directory / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n')
    before = {path: path.read_bytes() for path in directory.rglob("*.toml")}
    done = ctk(*arguments, status=status)
    assert words in done.stderr
    assert done.stderr.count("Error:") == 1
    assert {path: path.read_bytes() for path in directory.rglob("*.toml")} == before
