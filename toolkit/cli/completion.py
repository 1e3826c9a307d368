"""What the shell offers when Tab is pressed."""

from __future__ import annotations

from toolkit.support.errors import CtkError


def complete_recipe(incomplete: str) -> list[str]:
    """The recipes whose names begin so."""
    from toolkit.recipes.catalogue import Catalogue

    return [name for name in Catalogue.here().paths() if name.startswith(incomplete)]


def complete_base(incomplete: str) -> list[str]:
    """The bases whose names begin so."""
    from toolkit.recipes.catalogue import Catalogue

    try:
        return [name for name in Catalogue.here().bases() if name.startswith(incomplete)]
    except CtkError:  # a broken ./defs is for a command to explain, not for the Tab key
        return []
