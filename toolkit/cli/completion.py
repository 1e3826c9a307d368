"""Shell completion."""

from __future__ import annotations

from toolkit.support.errors import CtkError
from toolkit.support.text import printable


def complete_recipe(incomplete: str) -> list[str]:
    """The recipes whose names start with the text."""
    from toolkit.recipes.catalogue import Catalogue

    return [name for name in Catalogue.here().paths() if name.startswith(incomplete)]


def complete_base(incomplete: str) -> list[str]:
    """The bases whose names start with the text."""
    from toolkit.recipes.catalogue import Catalogue

    try:
        names = Catalogue.here().bases()
    except CtkError:  # a broken ./defs is for a command to explain, not for the Tab key
        return []
    # The shell types what it gets: a name of a cloned repository's bases.toml may hold anything.
    return [name for name in names if name.startswith(incomplete) and printable(name) == name]


def complete_code(incomplete: str) -> list[str]:
    """The codes that start with the text."""
    from toolkit.support.explanations import explanations

    return [code for code in explanations() if code.startswith(incomplete)]
