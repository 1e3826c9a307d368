"""The files of a lock that ctk downloads, and those that a build fetches."""

from __future__ import annotations

from dataclasses import replace

from tests.pins.locks import COMMIT, SHA, SMALL, WHEEL
from toolkit.pins.index.locate import Wanted
from toolkit.pins.lock.files import fetched_by_build, wanted_files


def test_packages_and_what_builds_them_are_wanted_once() -> None:
    lock = replace(SMALL, packages=(*SMALL.packages, WHEEL), installer=WHEEL)
    assert [file.name for file in wanted_files(lock)] == [
        "keras-bert-0.89.0.tar.gz",
        "timm-1.0.3-py3-none-any.whl",
        "setuptools-80-py3-none-any.whl",
    ]
    assert wanted_files(lock)[1] == Wanted("timm", "timm-1.0.3-py3-none-any.whl", SHA)
    assert fetched_by_build(lock) == ()


def test_commits_addresses_and_files_without_a_hash_are_left_to_the_build() -> None:
    address, nameless = replace(WHEEL, url="https://example.org/x.whl"), replace(WHEEL, sha256=None)
    lock = replace(SMALL, packages=(COMMIT, address, nameless), builds=())
    assert wanted_files(lock) == ()
    assert fetched_by_build(lock) == (COMMIT, address, nameless)
