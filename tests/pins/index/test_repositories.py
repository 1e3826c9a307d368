"""Repositories that a commit is fetched from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.index.repositories import read_repository
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.index
@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "requires a login"), (403, "403 Forbidden"), (404, "no such repository"), (500, "answered 500")],
)
def test_refused_repository_error_has_reason(refusing_server: str, tmp_path: Path, status: int, words: str) -> None:
    with pytest.raises(ProgramFailed) as raised:
        read_repository(f"git+{refusing_server}/{status}/mine@{'a1' * 20}", ("setup.py",), tmp_path)
    assert words in raised.value.message
    assert ("[[files]]" in (raised.value.fix or "")) is (status != 500)
