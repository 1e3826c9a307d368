"""The work area of a command: chosen, looked at, and only then used."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from toolkit.cli.output import say
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

_SHOWN = 3


def open_work_area(site: Site) -> WorkArea:
    """The work area, in which nobody but this user and root can write. Directories that were writable by others are
    reported once.

    Raises MissingOnHost if another user owns something in it, and WrongInput (`umask`) if the umask takes this user's
    own permissions: nobody could read what ctk and the runtime write.
    """
    from toolkit.support.files import current_umask
    from toolkit.support.paths import work_area
    from toolkit.support.trust import secure

    if (umask := current_umask()) & stat.S_IRWXU:
        raise WrongInput(
            f"with the umask {umask:04o} you could not read the files that you write",
            fix="Set another one in this shell: umask 022",
            code="umask",
        )
    area = work_area(site)
    tightened = secure(area)
    if tightened:
        more = f" and {len(tightened) - _SHOWN} more" if len(tightened) > _SHOWN else ""
        shown = ", ".join(map(str, tightened[:_SHOWN]))
        say(f"Warning: others could write to {shown}{more}; ctk removed that permission (chmod go-w).", stderr=True)
    return area
