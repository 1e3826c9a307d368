"""`ctk why`: the reason for a package in an image, and for its version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.area import open_work_area
from toolkit.cli.completion import complete_base
from toolkit.cli.output import print_json, say
from toolkit.recipes.architectures import lock_command
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.pins.lock.model import Lock
    from toolkit.pins.store import Locks
    from toolkit.recipes.catalogue import Catalogue


def why(
    package: Annotated[str, typer.Argument(metavar="PACKAGE", help="Package name or import name.")],
    name: Annotated[
        str | None, typer.Argument(metavar="[RECIPE]", help="Name of a recipe. [default: the only locked one]")
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="BASE",
            help="Read the lock that `ctk lock --base BASE` wrote.",
            autocompletion=complete_base,
        ),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option(
            "--arch",
            metavar="ARCH",
            help="Read the lock for this one architecture. [default: this host's, or the first one of the lock file]",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Explain why a package is in an image, and why at this version.

    Reads the recipe's lock, without the network. If another package is installed instead of PACKAGE, both are
    explained. Exit status 1: the lock does not contain the package.

        ctk why torchvision pytorch
    """
    from packaging.utils import canonicalize_name

    from toolkit.inventory.knowledge.names import names
    from toolkit.pins.lock.lockfile import locked_architectures
    from toolkit.pins.locking import is_current, refusal
    from toolkit.pins.store import Locks
    from toolkit.pins.why import why as explain
    from toolkit.recipes.architectures import for_architecture, only_architecture
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.support.site import load_site

    catalogue = Catalogue.here()
    locks = Locks.of(catalogue, open_work_area(load_site()).path)
    only = only_architecture(arch)
    path = _lock_of(locks, name, only, package) if base is None else _lock_on(catalogue, locks, name, base)
    there = _section(path, only)
    has = [package.name for package in there.packages] + [line.partition("==")[0] for line in there.present]
    known = names().given_by(package, has) or names().by_import(package)
    if known is not None and known != canonicalize_name(package):
        say(f"{package} is imported from the package {known}.", stderr=True)
        package = known
    sentences = explain(there, package)
    if not sentences:
        recipe = there.recipe if base is not None else path.name.removesuffix(".lock.toml")
        if base is None and recipe in catalogue.paths():
            asked = for_architecture(catalogue.recipe(recipe, bases=dict(locks.bases)), there.architecture)
            if not is_current(there, asked, locks.local_digest(asked)):
                raise refusal(asked, path, there)
        raise CheckFailed(
            f"{package} is not installed by {recipe}: neither the base nor the lock has it",
            fix=command_line(["ctk", "add", recipe, package]),
        )
    if json:
        document = {"package": package, "lock": str(path), "architecture": there.architecture}
        print_json("ctk.why/1", {**document, "reasons": list(sentences)})
        return
    if len(locked_architectures(path)) > 1:
        say(f"In the lock for {there.architecture}:")
    for sentence in sentences:
        say(sentence)


def _lock_of(locks: Locks, name: str | None, arch: str | None = None, package: str | None = None) -> Path:
    if name is None:
        found = sorted(locks.directory.glob("*.lock.toml"))
        if len(found) == 1:
            return found[0]
        raise WrongInput(
            f"there {'are several locks' if found else 'is no lock'} in {locks.directory}",
            fix="Name the recipe: ctk why PACKAGE NAME" if found else "ctk lock NAME creates one.",
        )
    path = locks.directory / f"{name}.lock.toml"
    if not path.is_file():
        if package is not None and (locks.directory / f"{package}.lock.toml").is_file():
            swapped = command_line(["ctk", "why", name, package])
            raise WrongInput(f"{package} is a recipe, and the package comes before the recipe", fix=swapped)
        make = lock_command(name, arch) if arch is not None else f"ctk lock {name}"
        raise WrongInput(f"the recipe {name} has no lock here: {path}", fix=make)
    return path


def _section(path: Path, arch: str | None) -> Lock:
    """The lock for the architecture that was named, else this host's, else the first one of the file."""
    from toolkit.pins.lock.lockfile import load_lock, locked_architectures
    from toolkit.recipes.architectures import host_architecture

    there = locked_architectures(path)
    wanted = arch or host_architecture()
    if arch is None and wanted not in there:
        wanted = next(iter(there), wanted)
    lock = load_lock(path, wanted)
    if lock is None:
        name = path.name.removesuffix(".lock.toml")
        raise WrongInput(f"{path} has no lock for {wanted}", fix=lock_command(name, wanted))
    return lock


def _lock_on(catalogue: Catalogue, locks: Locks, name: str | None, base: str) -> Path:
    """The lock of a recipe on another base than its own, which is kept in the work area."""
    from toolkit.recipes.references import resolve_base

    recipe = name or _lock_of(locks, None).name.removesuffix(".lock.toml")
    path = locks.path(catalogue.recipe(recipe, base=resolve_base(base, locks.bases)))
    if not path.is_file():
        make = command_line(["ctk", "lock", recipe, "--base", base])
        raise WrongInput(f"the recipe {recipe} has no lock on the base {base}", fix=make)
    return path
