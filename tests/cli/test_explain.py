"""`ctk explain` as a user meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_an_explanation(ctk: Ctk, sandbox: Path) -> None:
    code = document(ctk, "audit", sandbox)["findings"][0]["code"]
    done = ctk("explain", code)
    assert done.stdout.startswith(f"{code}: ")
    assert all(f"\n{part}: " in done.stdout for part in ("Severity", "Fix", "Source"))
    every = document(ctk, "explain")["explanations"]
    assert len(every) > 200
    explained = document(ctk, "explain", code)
    assert {key: explained[key] for key in every[0]} in every
    assert (explained["code"], explained["severity"]) == (code, ["error", "warning"])
    assert all(explained[key] for key in ("section", "meaning", "remedy", "source"))
    listed = ctk("explain").stdout.splitlines()
    assert listed[0] == "section\tcode\tmeaning"
    assert len(listed) == len(every) + 1


def test_an_exit_status_is_explained_and_an_unknown_code_gets_near_ones(ctk: Ctk) -> None:
    assert ctk("explain", "3").stdout == ctk("explain", "exit-3").stdout
    assert "missing on this host" in ctk("explain", "exit-3").stdout
    assert document(ctk, "explain", "exit-3")["severity"] == []
    refused = ctk("explain", "nofuse", status=2)
    assert 'Did you mean "no-fuse" or "fuse"?' in refused.stderr
