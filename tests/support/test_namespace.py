"""Subordinate ids: which range is taken, and that owners in the namespace are those of the container."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from toolkit.support import namespace
from toolkit.support.namespace import as_owner, first_range, lacks_capabilities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ann:100000:65536\n", (100000, 65536)),
        ("1000:200000:65536\n", (200000, 65536)),
        ("bob:1:65536\nann:100:10\nann:300000:131072\n", (300000, 131072)),
        ("ann:100000\n# ann:1:65536\nann:x:65536\n\n", None),
        ("", None),
    ],
)
def test_subordinate_range_is_the_first_that_is_long_enough(text: str, expected: tuple[int, int] | None) -> None:
    assert first_range(text, 1000, "ann") == expected


@pytest.mark.parametrize(
    ("mask", "last", "lacks"),
    [
        ("000001ffffffffff", "40", False),
        ("000001fffeffffff", "40", True),  # without CAP_SYS_RESOURCE, bit 24
        ("0000000000000000", "40", True),
        ("0000003fffffffff", "37", False),
        ("000001ffffffffff", "37", False),
    ],
)
def test_missing_capabilities_are_seen(mask: str, last: str, lacks: bool) -> None:
    assert lacks_capabilities(f"Name:\tx\nCapPrm:\t0\nCapEff:\t{mask}\n", f"{last}\n") is lacks


def test_a_status_without_capabilities_lacks_them() -> None:
    assert lacks_capabilities("Name:\tx\n", "40")


def test_root_with_all_capabilities_needs_no_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace.os, "geteuid", lambda: 0)
    monkeypatch.setattr(namespace, "lacks_capabilities", lambda: False)
    assert as_owner(["true", "-x"]) == ["true", "-x"]


def test_problem_without_a_line_in_subuid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The module runs as a file of its own: a copy of it that reads another /etc/subuid."""
    (tmp_path / "subuid").write_text("somebody:100000:65536\n")
    text = Path(namespace.__file__).read_text().replace("/etc/subuid", f"{tmp_path}/subuid")
    (tmp_path / "copy.py").write_text(text)
    monkeypatch.setattr(namespace, "__file__", str(tmp_path / "copy.py"))
    monkeypatch.setattr(namespace, "lacks_capabilities", lambda: True)
    problem = namespace.owner_problem()
    assert problem is not None
    assert "owners of files cannot be kept" in problem or "no newuidmap" in problem


def test_problem_names_a_missing_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "lacks_capabilities", lambda: True)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "there is no newuidmap on this host" in (namespace.owner_problem() or "")


def test_command_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespace, "lacks_capabilities", lambda: True)
    done = subprocess.run(as_owner(["ctk-no-such-program"]), capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert done.stderr.count("\n") == 1
