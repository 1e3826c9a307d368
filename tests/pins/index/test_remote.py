"""A file on a server, read in parts."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from tests.pins.small_index import Open
from tests.real.company import file_server
from toolkit.pins.index import remote
from toolkit.pins.index.remote import RemoteFile
from toolkit.support.http_client import TooLarge

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.index
def test_remote_file_is_read_in_parts_like_the_file_itself(
    wheel_server: tuple[str, Path, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, directory, _ = wheel_server
    content = bytes(range(256)) * 40
    (directory / "data").write_bytes(content)
    monkeypatch.setattr(remote, "_TAIL", 1000)
    ours, theirs = RemoteFile(f"{address}/data"), io.BytesIO(content)
    for offset, whence, size in ((0, 0, 10), (-22, 2, 22), (5000, 0, 300), (-50, 1, 100), (9990, 0, -1), (20000, 0, 5)):
        assert ours.seek(offset, whence) == theirs.seek(offset, whence)
        assert ours.read(size) == theirs.read(size)
        assert ours.tell() == theirs.tell()


@pytest.mark.index
def test_remote_file_too_large_to_be_sent_as_a_whole_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(b"0" * 1000)
    monkeypatch.setattr(remote, "_LARGEST", 999)
    with file_server(tmp_path, Open) as address, pytest.raises(TooLarge, match="more than 999 B"):
        RemoteFile(f"{address}/data")
