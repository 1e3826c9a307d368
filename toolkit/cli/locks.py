"""Messages about a lock: the requested policy, and the changes to the earlier lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import say
from toolkit.support.errors import WrongInput
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.pins.store import Found, Policy

AllowBrokenBase = Annotated[
    bool, typer.Option("--allow-broken-base", help="Use the base even if `ctk bases` says that it does not work.")
]


def lock_policy(*, locked: bool, base: str | None, otherwise: Policy) -> Policy:
    """The policy of a command. Raises WrongInput for `--locked` with another base than the recipe's own."""
    from toolkit.pins.store import Policy

    if not locked:
        return otherwise
    if base is not None:
        raise WrongInput("--locked uses the lock in ./defs, which is for the recipe's own base: leave out --base")
    return Policy.LOCKED


def say_lock_change(found: Found, name: str, *, written: bool) -> None:
    """Print, on standard error, in what an updated lock differs from the earlier one; nothing where it was current."""
    change = found.change
    if change is None:
        return
    if not written:
        state = "does not exist" if change.made else "is out of date"
        say(f"{found.path} {state}; this command does not write it. `ctk lock {name}` does.", stderr=True)
        lines = () if change.made else change.lines
    elif change.made:
        say(f"Lock written to {found.path}: {count(len(change.added), 'package')}.", stderr=True)
        lines = ()
    else:
        same = "" if change.lines else ": the same packages"
        say(f"Lock {found.path} updated{same}.", stderr=True)
        lines = change.lines
    for line in (*lines, *(f"Note: {note}" for note in change.notes)):
        say(f"  {line}", stderr=True)
