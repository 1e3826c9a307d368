"""`ctk doctor` as a user meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk


def test_doctor_writes_a_report_once(ctk: Ctk) -> None:
    assert "Written: ticket.txt" in ctk("doctor", "--report", "ticket.txt", status=None).stdout
    text = (ctk.directory / "ticket.txt").read_text()
    assert text.startswith("ctk ")
    assert str(ctk.directory.parent / "home") not in text
    assert "ticket.txt exists" in ctk("doctor", "--report", "ticket.txt", status=2).stderr
    ctk("doctor", "--report", "ticket.txt", "--force", status=None)
