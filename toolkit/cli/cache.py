"""`ctk cache`: what the store holds, and how it is pruned and verified."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.documents import cache as documents
from toolkit.cli.output import live_steps, print_findings, print_json, print_table, say, suggest
from toolkit.cli.stores import tell_unused
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.files import format_size
from toolkit.support.findings import Finding, Severity
from toolkit.support.quantities import format_age, parse_age, parse_size
from toolkit.support.text import count

if TYPE_CHECKING:
    from toolkit.store.listing import Listed
    from toolkit.store.pruning import Pruned
    from toolkit.store.store import Store
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Setting, Site

_SHOWN_IMAGES = 3

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="""Show, prune and verify the store of bases, layers and packages.

    Builds keep there what they pulled, built and downloaded, and use it again. All of it can be removed: the next build
    makes what it needs.

        ctk cache list
        ctk cache prune --keep 50G --older 30d
        ctk cache verify
    """,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("list")
def list_entries(json: Json = False) -> None:
    """List what the store holds: kind, content, size, last use, and the images that were made with it.

    Shared stores, which the site or CTK_STORE names, come first. In a shared store the last use is that of its owner.

        ctk cache list
    """
    from toolkit.store.listing import entries

    store, keep = _open()
    unused = tell_unused(store)
    found = entries(store)
    if json:
        print_json("ctk.cache/1", documents.cache(store, found, keep.value if keep else None), unused)
        return
    now = time.time()
    columns = ["kind", "content", "size", "last use", "needed by", "store"]
    rows = [_row(listed, store, now) for listed in found]
    if sys.stdout.isatty() and not store.shared:  # `cut` and `awk` count the columns
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    print_table(columns, rows)
    own = [listed for listed in found if listed.root == store.own]
    limit = f" of {format_size(keep.value)} ({keep.origin})" if keep else ""
    say(f"{store.own}: {_summary(own)}{limit}", stderr=True)
    if any(listed.problem for listed in found):
        suggest(["ctk", "cache", "verify"])


@app.command()
def prune(
    keep: Annotated[
        str | None,
        typer.Option("--keep", metavar="SIZE", help="Remove the oldest until SIZE is left, such as 50G."),
    ] = None,
    older: Annotated[
        str | None,
        typer.Option("--older", metavar="AGE", help="Remove what was not used for AGE, such as 30d or 12h."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
    json: Json = False,
) -> None:
    """Remove what was not used for longest from your store.

    Layers and packages go before the bases that they were made from. What was used in the last hour stays, so that
    running builds keep what they need. Without options, the store is pruned to `keep` in `[cache]` of
    ~/.config/ctk/settings.toml or of the site. Shared stores are not changed.

        ctk cache prune --keep 50G
        ctk cache prune --older 30d --dry-run
    """
    from toolkit.store.pruning import SPARED_SECONDS
    from toolkit.store.pruning import prune as prune_store

    store, setting = _open()
    limit = parse_size(keep, "--keep") if keep is not None else None
    age = parse_age(older, "--older") if older is not None else None
    if limit is None and age is None:
        if setting is None:
            raise WrongInput(
                "`ctk cache prune` needs a limit",
                fix="Give --keep 50G or --older 30d, or set keep in [cache] of ~/.config/ctk/settings.toml.",
                code="wrong-usage",
            )
        limit = setting.value
    pruned = prune_store(store, keep=limit, older=age, dry_run=dry_run)
    findings = [_above_limit(pruned)] if not pruned.is_enough else []
    if json:
        print_json("ctk.cache-prune/1", documents.pruned(store, pruned, dry_run=dry_run), findings)
        return
    if pruned.removed:
        rows = [(listed.kind.value, listed.words, format_size(listed.size)) for listed in pruned.removed]
        print_table(["kind", "content", "size"], rows)
    done = "Would remove" if dry_run else "Removed"
    say(f"{done} {_summary(pruned.removed)}; {_summary(pruned.left)} left.", stderr=True)
    if age is not None and age < SPARED_SECONDS and pruned.left:
        say("What was used in the last hour stays: a running build may need it.", stderr=True)
    print_findings(findings, stderr=True)


@app.command()
def verify(
    remove: Annotated[bool, typer.Option("--remove", help="Remove damaged entries from your store.")] = False,
    json: Json = False,
) -> None:
    """Read all content of the store again, and name what is damaged.

    Builds compare content with its hash before each use, but read a file again only if its size or its times changed.
    This command reads everything, as after a failure of a disk. Exit status 1: something is damaged, or another user
    could have written to your store. Entries of shared stores that builds do not trust are named, and not read.

        ctk cache verify
    """
    from toolkit.store.verifying import verify as verify_store

    store, _ = _open()
    unused = tell_unused(store)
    with live_steps("Reading the store") as on_step:
        found = verify_store(store, remove=remove, on_entry=lambda listed: on_step(listed.words))
    findings = [
        _unusable(listed, store, removed=listed in found.removed) for listed in (*found.damaged, *found.foreign)
    ]
    if json:
        print_json("ctk.cache-verify/1", documents.verified(store, found), [*unused, *findings])
    else:
        print_findings(findings)
        noun = "entry is" if found.whole == 1 else "entries are"
        say(f"{found.whole} {noun} undamaged ({format_size(found.whole_bytes)}).")
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(1)


@app.command()
def path(json: Json = False) -> None:
    """Print the directory of your store; with `--json`, also those of the shared stores.

    ls $(ctk cache path)
    """
    store, _ = _open()
    if json:
        print_json("ctk.cache-path/1", {"own": str(store.own), "shared": list(map(str, store.shared))})
    else:
        say(str(store.own))


def _open() -> tuple[Store, Setting[int] | None]:
    """The store of this user and of the site, and how large this user's may be."""
    from toolkit.cli.area import open_work_area
    from toolkit.store.store import open_store
    from toolkit.support.settings import cache_keep
    from toolkit.support.site import load_site

    site = load_site()
    return open_store(open_work_area(site), site), cache_keep(site)


def prune_after_build(area: WorkArea, site: Site) -> None:
    """Prune this user's store to the size that the user or the site set, if any; what fails is only a warning."""
    from toolkit.store.pruning import prune as prune_store
    from toolkit.store.store import open_store
    from toolkit.support.settings import cache_keep

    try:
        limit = cache_keep(site)
        pruned = prune_store(open_store(area, site), keep=limit.value) if limit is not None else None
    except CtkError as error:
        say(f"Warning: the store was not pruned: {error.message}", stderr=True)
        return
    if limit is not None and pruned is not None and pruned.removed:
        say(f"Removed {_summary(pruned.removed)} from the store: keep is set in {limit.origin}.", stderr=True)


def _row(listed: Listed, store: Store, now: float) -> tuple[str, ...]:
    names = list(dict.fromkeys(image.recipe or image.image.name for image in listed.needed_by))
    more = f" and {len(names) - _SHOWN_IMAGES} more" if len(names) > _SHOWN_IMAGES else ""
    return (
        listed.kind.value,
        f"{_state(listed)}: {_problem(listed)}" if listed.problem else listed.words,
        format_size(listed.size),
        # The clock that says so was wrong; pruning does not go by it, either.
        format_age(now - listed.last_use) if listed.has_known_use(now) else "unknown",
        ", ".join(names[:_SHOWN_IMAGES]) + more,
        "own" if listed.root == store.own else str(listed.root),
    )


def _summary(found: tuple[Listed, ...] | list[Listed]) -> str:
    return f"{count(len(found), 'entry', 'entries')}, {format_size(sum(listed.size for listed in found))}"


def _above_limit(pruned: Pruned) -> Finding:
    return Finding(
        "cache-above-limit",
        Severity.WARNING,
        f"The store still has {format_size(pruned.left_bytes)}, more than {format_size(pruned.wanted or 0)}: "
        "what was used in the last hour stays.",
        "Prune again in an hour, or allow more.",
    )


def _state(listed: Listed) -> str:
    return "not used" if listed.is_foreign else "damaged"


def _problem(listed: Listed) -> str:
    """Why an entry cannot be used, without its path: that stands before it."""
    return (listed.problem or "").removeprefix(f"{listed.directory} ")


def _unusable(listed: Listed, store: Store, *, removed: bool) -> Finding:
    """The finding on an entry that builds do not use."""
    if removed:
        fix = "It was removed; the next build that needs it makes it again."
    elif listed.root == store.own:
        fix = "`ctk cache verify --remove` removes it; the next build that needs it makes it again."
    else:
        fix = "Tell the owner of this shared store. Builds do not use it."
    what = f"{listed.directory} ({listed.words})"
    if not listed.is_foreign:
        return Finding("damaged-entry", Severity.ERROR, f"{what} is damaged: {_problem(listed)}.", fix)
    severity = Severity.ERROR if listed.root == store.own else Severity.WARNING
    return Finding("untrusted-entry", severity, f"{what} is not used: {_problem(listed)}.", fix)
