"""`ctk explain` as a user meets it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import document
from tests.pages import CHECKOUT, blocks
from toolkit.cli.explain import explained
from toolkit.support.errors import WrongInput

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


@pytest.mark.parametrize("page", ["docs/troubleshooting.md", "docs/troubleshooting.ja.md"])
def test_each_message_of_the_troubleshooting_page_is_explained(page: str) -> None:
    lines = [line for block in blocks(page, "text") for line in block.text.splitlines()]
    assert len(lines) >= 50
    lines += [found for row in rows(page) for found in re.findall(r"`([^`]+)`", row[0]) if not is_command(found)]
    assert [line for line in lines if not is_explained(line)] == []


def rows(page: str) -> list[list[str]]:
    """The rows of tables of messages: not their headings."""
    lines = (CHECKOUT / page).read_text(encoding="utf-8").splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]


def is_command(text: str) -> bool:
    return text.startswith(("ctk ", "--")) or text in (
        "COMPLETED",
        "401",
        "403",
        "429",
        "denied",
        "damaged when it was packed",
    )


def is_explained(text: str) -> bool:
    try:
        return bool(explained(text).meaning)
    except WrongInput:
        return False


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("137", "exit-137"),
        ("9", "exit-137"),
        ("0:9", "exit-137"),
        ("139", "exit-139"),
        ("143", "exit-143"),
        ("0:53", "job-launch-failure"),
        ("JobLaunchFailure", "job-launch-failure"),
        ("OUT_OF_MEMORY", "job-host-memory"),
        ("externally-managed-environment", "externally-managed-environment"),
        ("error: externally-managed-environment", "externally-managed-environment"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        ("ERROR: Failed to create user namespace: No space left on device", "user-namespace-limit"),
        ("Warning: x.sif is old [image-outdated]", "image-outdated"),
        ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "gpu-not-covered"),
        ("fatal error: 'portaudio.h': No such file or directory", "missing-header"),
    ],
)
def test_a_message_or_a_status_is_explained(text: str, code: str) -> None:
    assert explained(text).code == code
