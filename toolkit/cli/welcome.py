"""What bare `ctk` says: what is here, and what comes next."""

from __future__ import annotations


def welcome() -> None:
    """Print a few lines about this folder and the next step."""
