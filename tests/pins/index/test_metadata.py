"""What a wheel requires, read from a server without the wheel."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

import pytest

from toolkit.pins.index.metadata import read_requirements
from toolkit.pins.index.wheels import File

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = "thing-1.0-py3-none-any.whl"


@pytest.mark.index
def test_requirements_are_read_once_and_kept_by_hash(
    wheel_server: tuple[str, Path, list[object]], tmp_path: Path
) -> None:
    address, _, asked = wheel_server
    file = File(WHEEL, f"{address}/{WHEEL}", "0" * 64)
    expected = ('torch>=2.6; extra == "torch"',)
    assert read_requirements(file, tmp_path / "kept") == expected
    assert asked == [(f"{WHEEL}.metadata", None), (WHEEL, "bytes=-65536")]
    assert read_requirements(file, tmp_path / "kept") == expected
    assert len(asked) == 2
    (kept,) = (tmp_path / "kept").iterdir()
    for damage in (b"", b"[" * 100_000, b"{}", b"[1]", b"3", b"\xff"):
        kept.write_bytes(damage)
        assert read_requirements(file, tmp_path / "kept") == expected


@pytest.mark.index
def test_requirements_are_read_from_the_metadata_file_where_there_is_one(
    wheel_server: tuple[str, Path, list[object]], tmp_path: Path
) -> None:
    address, directory, asked = wheel_server
    (directory / f"{WHEEL}.metadata").write_text(
        "Metadata-Version: 2.1\nName: thing\nRequires-Dist: six\n\nRequires-Dist: x\n"
    )
    assert read_requirements(File(WHEEL, f"{address}/{WHEEL}", None), tmp_path) == ("six",)
    assert len(asked) == 1
    (directory / f"{WHEEL}.metadata").write_text("<html>Welcome to the portal</html>")
    assert read_requirements(File(WHEEL, f"{address}/{WHEEL}", None), tmp_path) == ('torch>=2.6; extra == "torch"',)


@pytest.mark.index
def test_requirements_that_cannot_be_read_are_none(
    wheel_server: tuple[str, Path, list[object]], tmp_path: Path
) -> None:
    address, directory, _ = wheel_server
    (directory / "broken-1.0-py3-none-any.whl").write_bytes(b"no zip file")
    for name in ("thing-1.0.tar.gz", "gone-1.0-py3-none-any.whl", "broken-1.0-py3-none-any.whl"):
        assert read_requirements(File(name, f"{address}/{name}", None), tmp_path) is None


@pytest.mark.index
@pytest.mark.parametrize("fault", ["huge", "method", "encrypted", "cut", "directory"])
def test_a_wheel_that_lies_about_its_metadata_is_not_read(
    wheel_server: tuple[str, Path, list[object]], tmp_path: Path, fault: str
) -> None:
    address, directory, _ = wheel_server
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as wheel:
        text = b"Metadata-Version: 2.1\n" + bytes(9 << 20 if fault == "huge" else 90_000)
        wheel.writestr("liar-1.0.dist-info/METADATA", text)
    made = bytearray(content.getvalue())
    entry, end = made.rindex(b"PK\1\2"), made.rindex(b"PK\5\6")
    if fault == "method":
        made[entry + 10 : entry + 12] = b"\x63\x00"
    elif fault == "encrypted":
        made[entry + 8] |= 1
    elif fault == "cut":
        made[60:100] = bytes(40)
    elif fault == "directory":  # a central directory of 4 GiB
        made[end + 12 : end + 16] = b"\xff\xff\xff\x7f"
    name = f"liar_{fault}-1.0-py3-none-any.whl"
    (directory / name).write_bytes(made)
    assert read_requirements(File(name, f"{address}/{name}", None), tmp_path) is None


def test_requirements_of_a_wheel_on_this_machine_are_read(
    wheel_server: tuple[str, Path, list[object]], tmp_path: Path
) -> None:
    _, directory, asked = wheel_server
    file = File(WHEEL, (directory / WHEEL).as_uri(), None)
    assert read_requirements(file, tmp_path) == ('torch>=2.6; extra == "torch"',)
    assert not asked
