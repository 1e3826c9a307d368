"""The work area of a command: chosen, looked at, and only then used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.cli.output import say

if TYPE_CHECKING:
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

_SHOWN = 3


def open_work_area(site: Site) -> WorkArea:
    """The work area, in which nobody but this user and root can write. Directories that were writable by others are
    reported once.

    Raises MissingOnHost if another user owns something in it.
    """
    from toolkit.support.paths import work_area
    from toolkit.support.trust import secure

    area = work_area(site)
    tightened = secure(area)
    if tightened:
        more = f" and {len(tightened) - _SHOWN} more" if len(tightened) > _SHOWN else ""
        shown = ", ".join(map(str, tightened[:_SHOWN]))
        say(f"Warning: others could write to {shown}{more}; ctk removed that permission (chmod go-w).", stderr=True)
    return area
