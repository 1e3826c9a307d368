"""The token of a job script in the lines of its log."""

from __future__ import annotations

import re


def without_token(text: str) -> str:
    """What a script prints, as if its lines had no token."""
    return re.sub(
        r"^ctk: GPU gate of this script, token \w+\n|(?<=^ctk)\[[0-9a-f]{12}\](?=: )", "", text, flags=re.MULTILINE
    )
