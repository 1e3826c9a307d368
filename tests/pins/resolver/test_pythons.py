"""Releases that forbid the Python of a base, over an index of our own whose pages say so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import distribution, target
from tests.pins.small_index import Listed, serve_pages
from toolkit.pins.bases.facts import BaseFacts
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.locking import make_lock
from toolkit.pins.resolver import releases
from toolkit.recipes.model import Base, Recipe
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.pins.lock.model import Lock

pytestmark = pytest.mark.index

PLAIN = target(distribution("pip", "24.2"), python="3.11.2")
FILES = [
    Listed("array-1.20.tar.gz", python=">=3.7"),
    Listed("array-1.21.6-cp310-cp310-manylinux_2_17_x86_64.whl", python=">=3.7,<3.11"),
    Listed("array-1.21.6.tar.gz", python=">=3.7,<3.11"),
    Listed("array-1.24.0-cp311-cp311-manylinux_2_17_x86_64.whl", python=">=3.8"),
    Listed("frame-1.5-py3-none-any.whl", ("array<1.22",)),
    Listed("frame-2.0-py3-none-any.whl", ("array>=1.23",)),
    Listed("pure-1.0-py3-none-any.whl", python=">=3.6"),
    Listed("pure-1.1-py3-none-any.whl", python=">=3.6,<3.11"),
    Listed("pure-1.2-py3-none-any.whl", python=">=3.6,<3.11"),
]


@pytest.fixture(scope="module")
def uv(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Uv]:
    with serve_pages(FILES) as address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_DEFAULT_INDEX", address)
        yield open_uv(tmp_path_factory.mktemp("area"))


def lock(uv: Uv, *packages: str, skip: tuple[str, ...] = ()) -> Lock:
    base = Base("base", "localimage", "/base.sif")
    return make_lock(
        uv, Recipe("x", Path("x.toml"), base, packages=packages, import_skip=skip), BaseFacts(base, PLAIN, "sha256:0")
    )


def test_requested_release_that_forbids_the_python_is_refused(uv: Uv) -> None:
    with pytest.raises(CheckFailed) as caught:
        lock(uv, "array==1.21.6", "pure")
    assert caught.value.message == (
        "array==1.21.6 is not available for this base: "
        "array 1.21.6 requires Python >=3.7,<3.11; the base has Python 3.11.2"
    )
    assert "Another version fits: array==1.24.0." in (caught.value.fix or "")
    assert "A base with Python >=3.7,<3.11 fits" in (caught.value.fix or "")


@pytest.mark.parametrize("skip", [(), ("pure",)])
def test_release_that_forbids_the_python_is_not_chosen(uv: Uv, skip: tuple[str, ...]) -> None:
    assert lock(uv, "pure", skip=skip).versions == {"pure": "1.0"}


def test_release_that_was_looked_up_once_is_not_looked_up_again(uv: Uv, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = lock(uv, "frame", "pure==1.0")
    for page in releases.pages(uv).iterdir():
        os.utime(page, (0, 0))

    def read_url(address: str, *_: object, **__: object) -> None:
        raise AssertionError(f"{address} was asked for")

    monkeypatch.setattr(releases, "read_url", read_url)
    assert lock(uv, "frame", "pure==1.0") == earlier
