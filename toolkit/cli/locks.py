"""Messages about a lock: the requested policy, and the changes to the earlier lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import print_findings, print_table, say
from toolkit.recipes.architectures import host_architecture, lock_command
from toolkit.support.errors import WrongInput
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.pins.bases.steady import PresentBase
    from toolkit.pins.lock.changes import Row
    from toolkit.pins.store import Found, Locks, Policy
    from toolkit.recipes.model import Recipe
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

AllowBrokenBase = Annotated[
    bool, typer.Option("--allow-broken-base", help="Use the base even if `ctk bases` says that it does not work.")
]

KeepVersions = Annotated[
    bool,
    typer.Option(
        "--keep-versions",
        help="Require exactly the versions of a `pip freeze`. [default: take them where the base allows]",
    ),
]


def lock_policy(*, locked: bool, base: str | None, otherwise: Policy) -> Policy:
    """The policy of a command. Raises WrongInput for `--locked` with another base than the recipe's own."""
    from toolkit.pins.store import Policy

    if not locked:
        return otherwise
    if base is not None:
        raise WrongInput("--locked uses the lock in ./defs, which is for the recipe's own base: leave out --base")
    return Policy.LOCKED


@dataclass(frozen=True, slots=True)
class BaseReader:
    """Finds the image of a recipe's base where a lock needs it: as `toolkit.builds.bases.base_to_read`."""

    locks: Locks
    area: WorkArea
    site: Site
    on_step: Callable[[str], None]

    def read(self, recipe: Recipe, *, pull: bool = False, fresh: bool = False) -> PresentBase:
        from toolkit.builds.bases import Pulling, base_to_read
        from toolkit.builds.context import Listener
        from toolkit.runtime.engine import find_runtime

        listener = Listener(self.on_step, on_note=lambda text: say(f"ctk: {text}", stderr=True))
        pulling = Pulling(lambda: find_runtime(self.site), listener)
        return base_to_read(recipe, self.locks, self.area, pulling, pull=pull, fresh=fresh)


def say_lock_change(found: Found, name: str, *, written: bool) -> None:
    """Print, on standard error, in what an updated lock differs from the earlier one; nothing where it was current."""
    change, architecture = found.change, found.lock.architecture
    if change is None:
        return
    foreign = architecture != host_architecture()
    command = lock_command(name, architecture) if foreign else f"ctk lock {name}"
    which = f"{found.path}{f' ({architecture})' if foreign else ''}"
    if not written:
        state = "does not exist" if change.made else "is out of date"
        say(f"{which} {state}; this command does not write it. `{command}` does.", stderr=True)
        lines = () if change.made else change.lines
    elif change.made:
        say(f"Lock written to {which}: {count(len(change.added), 'package')}.", stderr=True)
        lines = ()
    elif change.same_request and not change.lines:
        say(f"Lock {which} was checked against the base: the same packages.", stderr=True)
        lines = ()
    else:
        same = "" if change.lines else ": the same packages"
        say(f"Lock {which} updated{same}.", stderr=True)
        lines = change.lines
    for line in (*lines, *(f"Note: {note}" for note in change.notes)):
        say(f"  {line}", stderr=True)
    for released, newest in change.released:
        again = f"`{command} --upgrade {released}` takes {newest}"
        say(f"  Nothing else holds {released} back any more: {again}.", stderr=True)
    say_list_rows(change.unlike_list, stderr=True)


def say_list_rows(rows: Sequence[Row], *, stderr: bool = False) -> None:
    """Print where an image has no version of the recipe's list, and why."""
    if rows:
        say(f"{count(len(rows), 'package')} of the list in another version:", stderr=stderr)
        print_table(("package", "list", "lock", "why"), rows, stderr=stderr)


def say_others(found: Found, locks: Locks, recipe: Recipe) -> None:
    """Warn, on standard error, of sections for other architectures that an update of the lock left out of date."""
    if found.change is not None:
        print_findings(locks.judge_others(recipe, [found.lock.architecture]), stderr=True)
