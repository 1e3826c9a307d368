"""Golden files: whole scripts, regenerated for review by `CTK_GOLDEN=write pytest tests/jobs/dialects`."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare `text` with the golden file of that name."""
    path = GOLDEN / name
    if os.environ.get("CTK_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text()
