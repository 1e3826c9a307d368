"""A lab's directory has a short path that slurm.conf allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.lab import paths as place
from toolkit.lab.paths import choose_place, create, fits
from toolkit.support.errors import MissingOnHost


@pytest.mark.parametrize(
    ("directory", "answer"),
    [
        ("/tmp/ctk-lab-12345678", True),
        ("/" + "a" * 57, True),  # 58 bytes, and 49 for /spool/n64/stepd.slurm.pmix.4294967295.4294967295
        ("/" + "a" * 58, False),
        ("/tmp/my labs", False),
        ("/tmp/100%n", False),
        ("/tmp/ラボ", False),
        ("/tmp/a#b", False),
    ],
)
def test_a_directory_fits_when_its_longest_socket_does(directory: str, answer: bool) -> None:
    assert fits(Path(directory)) is answer


def test_each_unusable_directory_is_reported_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("a" * 80)
    long.mkdir()
    monkeypatch.setattr(place, "_candidates", lambda: [tmp_path / "none", long])
    with pytest.raises(MissingOnHost) as caught:
        choose_place("lab")
    assert "none: no such directory" in caught.value.message
    assert f"{long}: the path is too long for a socket" in caught.value.message


def test_a_place_is_private_and_new(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = choose_place("lab"), choose_place("lab")
    assert first.directory != second.directory
    assert fits(first.directory)
    create(first)
    try:
        assert first.directory.stat().st_mode & 0o777 == 0o700
        with pytest.raises(MissingOnHost, match="File exists"):
            create(first)
    finally:
        first.directory.rmdir()
