"""`ctk diff` as a user meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.conftest import SITE, document
from tests.inventory.making import distribution, fill, python_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_two_images_that_differ(ctk: Ctk, sandbox: Path, tmp_path: Path) -> None:
    other = fill(tmp_path / "other", {**python_files(), **distribution("torch", "2.5.1", SITE)})
    ctk("diff", sandbox, sandbox)
    done = ctk("diff", sandbox, other, status=1)
    assert f"distribution\ttorch\t/{SITE}\t2.13.0+cpu\t2.5.1" in done.stdout
    assert document(ctk, "diff", sandbox, other)["differences"][0]["second"] == "2.5.1"
