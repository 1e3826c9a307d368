"""Shell completion."""

from __future__ import annotations

from toolkit.support.errors import CtkError


def complete_recipe(incomplete: str) -> list[str]:
    """The recipes whose names start with the text."""
    from toolkit.recipes.catalogue import Catalogue

    return [name for name in Catalogue.here().paths() if name.startswith(incomplete)]


def complete_base(incomplete: str) -> list[str]:
    """The bases whose names start with the text."""
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.fields import NAME

    try:
        names = Catalogue.here().bases()
    except CtkError:  # a broken ./defs is for a command to explain, not for the Tab key
        return []
    # The shell types, and zsh evaluates, what it gets.
    return [name for name in names if name.startswith(incomplete) and NAME.fullmatch(name)]


def complete_code(incomplete: str) -> list[str]:
    """The codes that start with the text."""
    from toolkit.support.explanations import explanations

    return [code for code in explanations() if code.startswith(incomplete)]


def complete_cluster(incomplete: str) -> list[str]:
    """The cluster profiles whose names start with the text."""
    from toolkit.scheduler.profile_places import Profiles

    try:
        return [name for name in Profiles.here().paths() if name.startswith(incomplete)]
    except CtkError:  # an invalid file of the site
        return []
