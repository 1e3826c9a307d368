"""What a wheel requires, read from a server without the wheel."""

from __future__ import annotations

import io
import re
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.small_index import Open
from tests.real.company import file_server, make_wheel
from toolkit.pins.index import remote
from toolkit.pins.index.metadata import read_requirements
from toolkit.pins.index.remote import RemoteFile
from toolkit.pins.index.wheels import File

if TYPE_CHECKING:
    from collections.abc import Iterator

WHEEL = "thing-1.0-py3-none-any.whl"


class InParts(Open):
    """A server that knows ranges, and writes down what it was asked."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:  # noqa: N802 - http.server calls it so
        span = self.headers.get("Range")
        type(self).asked.append((Path(self.path).name, span))
        path = Path(self.translate_path(self.path))
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", span or "")
        if not found or not path.is_file():
            SimpleHTTPRequestHandler.do_GET(self)
            return
        content = path.read_bytes()
        start = int(found[1]) if found[1] else max(0, len(content) - int(found[2]))
        part = content[start : int(found[2]) + 1] if found[1] else content[start:]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{start + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path, list[tuple[str, str | None]]]]:
    """The address of a directory with a wheel, the directory, and what was asked."""
    InParts.asked = []
    make_wheel(tmp_path, "thing", "1.0", 'torch>=2.6; extra == "torch"')
    directory = tmp_path / "simple" / "thing"
    with file_server(directory, InParts) as address:
        yield address, directory, InParts.asked


@pytest.mark.index
def test_requirements_are_read_once_and_kept_by_hash(server: tuple[str, Path, list[object]], tmp_path: Path) -> None:
    address, _, asked = server
    file = File(WHEEL, f"{address}/{WHEEL}", "0" * 64)
    expected = ('torch>=2.6; extra == "torch"',)
    assert read_requirements(file, tmp_path / "kept") == expected
    assert asked == [(f"{WHEEL}.metadata", None), (WHEEL, "bytes=-65536")]
    assert read_requirements(file, tmp_path / "kept") == expected
    assert len(asked) == 2


@pytest.mark.index
def test_requirements_are_read_from_the_metadata_file_where_there_is_one(
    server: tuple[str, Path, list[object]], tmp_path: Path
) -> None:
    address, directory, asked = server
    (directory / f"{WHEEL}.metadata").write_text(
        "Metadata-Version: 2.1\nName: thing\nRequires-Dist: six\n\nRequires-Dist: x\n"
    )
    assert read_requirements(File(WHEEL, f"{address}/{WHEEL}", None), tmp_path) == ("six",)
    assert len(asked) == 1
    (directory / f"{WHEEL}.metadata").write_text("<html>Welcome to the portal</html>")
    assert read_requirements(File(WHEEL, f"{address}/{WHEEL}", None), tmp_path) == ('torch>=2.6; extra == "torch"',)


@pytest.mark.index
def test_requirements_that_cannot_be_read_are_none(server: tuple[str, Path, list[object]], tmp_path: Path) -> None:
    address, directory, _ = server
    (directory / "broken-1.0-py3-none-any.whl").write_bytes(b"no zip file")
    for name in ("thing-1.0.tar.gz", "gone-1.0-py3-none-any.whl", "broken-1.0-py3-none-any.whl"):
        assert read_requirements(File(name, f"{address}/{name}", None), tmp_path) is None


def test_requirements_of_a_wheel_on_this_machine_are_read(
    server: tuple[str, Path, list[object]], tmp_path: Path
) -> None:
    _, directory, asked = server
    file = File(WHEEL, (directory / WHEEL).as_uri(), None)
    assert read_requirements(file, tmp_path) == ('torch>=2.6; extra == "torch"',)
    assert not asked


@pytest.mark.index
def test_remote_file_is_read_in_parts_like_the_file_itself(
    server: tuple[str, Path, list[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, directory, _ = server
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
    with file_server(tmp_path, Open) as address, pytest.raises(ValueError, match="whole files only"):
        RemoteFile(f"{address}/data")
