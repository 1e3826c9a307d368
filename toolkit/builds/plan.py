"""From a target to a plan: everything that can be known and refused before work starts."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.record import Record, read_record, record_beside
from toolkit.builds.target import Kind, Target
from toolkit.definitions.definition import Definition, check, define_copy
from toolkit.pins.steady import state_of
from toolkit.recipes.references import base_from_reference, resolve_base
from toolkit.support.errors import WrongInput
from toolkit.support.files import leads_into_hidden, open_regular, refuse_link
from toolkit.support.ownership import is_trusted, user_name
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from toolkit.pins.steady import BaseState
    from toolkit.pins.store import Found
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base, Recipe

_UNPACKED = 4  # an image of a framework unpacks to 2 to 3 times its compressed size, and the new one comes on top
LOG_MARK = "# ctk build log"


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """What will be built from what, and where it goes.

    `recipe` is what a recipe's name means. `definition` is
    the text that the runtime gets; None where it is yet to be prepared from the recipe, or where `source` is a file of
    the person's own. `locked` is the lock that it installs, and what became of the earlier one. `binds` are shown to
    the build (`SRC:DST`). `base_size` is what the base takes unpacked, in octets; 0 where it is not known. `base_state`
    is what a base on this machine was when the build was planned: it must stay so until the image is whole. `force`
    replaces the output whatever image it is. `link` is the symlink that led to `output`, if there was one.
    """

    target: Target
    output: Path
    sandbox: bool
    record: Record
    source: str
    recipe: Recipe | None = None
    definition: Definition | None = None
    locked: Found | None = None
    binds: tuple[str, ...] = ()
    base_size: int = 0
    base_state: BaseState | None = None
    force: bool = False
    link: Path | None = None

    @property
    def log(self) -> Path:
        return self.output.with_name(f"{self.output.name}.build.log")


def plan_build(
    target: Target,
    catalogue: Catalogue,
    *,
    output: Path | None,
    sandbox: bool,
    base: str | None,
    force: bool,
) -> BuildPlan:
    """Plan a build. Raises WrongInput where the target is wrong, or the output is something of the person's."""
    if base is not None and target.kind is not Kind.RECIPE:
        raise WrongInput(f"--base changes the base of a recipe, and {target.text} is none")
    recipe: Recipe | None = None
    own_base: Base | None = None
    definition: Definition | None = None
    source = target.text
    if target.kind is Kind.RECIPE:
        recipe = catalogue.recipe(target.text, base=resolve_base(base, catalogue.bases()) if base else None)
        check(recipe)
        own_base = recipe.base
    elif target.kind is Kind.REFERENCE:
        own_base = base_from_reference(target.text)
        definition = define_copy(own_base)
    else:
        source = str(Path(target.text).absolute())
    final, link = _final(output or Path(target.name + ("" if sandbox else ".sif")))
    plan = BuildPlan(
        target=target,
        output=final,
        sandbox=sandbox,
        record=Record(target.identity, recipe.base.name if recipe else None),
        source=source,
        recipe=recipe,
        definition=definition,
        base_size=_size_of_local(own_base),
        base_state=state_of(own_base),
        force=force,
        link=link,
    )
    check_output(plan)
    return plan


def _final(output: Path) -> tuple[Path, Path | None]:
    """Where the image is to stand: where a link of that name leads, since people keep images on scratch that way.

    With it the link, None where there is none.
    """
    final = Path(one_line(str(output), "the output")).absolute()
    return (Path(os.path.realpath(final)), final) if final.is_symlink() else (final, None)


def _size_of_local(base: Base | None) -> int:
    """As `unpacked_size`, of the local file that is built from; 0 for what a registry or a folder holds."""
    if base is None or base.bootstrap not in ("localimage", "docker-archive"):
        return 0
    return unpacked_size(Path(base.reference))


def unpacked_size(image: Path) -> int:
    """Octets that a build from the file `image` needs; 0 where it is none."""
    return image.stat().st_size * _UNPACKED if image.is_file() else 0


def check_output(plan: BuildPlan) -> None:
    """Raise WrongInput where the output cannot be written, or something of the person's stands there."""
    final = plan.output
    if not final.name:
        raise WrongInput("/ cannot be replaced by an image", fix="Give -o the name of a file or of a new folder.")
    _check_links(plan)
    if not final.parent.is_dir():
        raise WrongInput(f"there is no folder {final.parent} to write {final.name} into")
    if plan.target.kind is Kind.SANDBOX and final.resolve().is_relative_to(Path(plan.source).resolve()):
        raise WrongInput(f"{final} is in the sandbox itself", fix="Name the new image with -o ../NAME.sif.")
    if final.is_dir() and not plan.sandbox:
        raise WrongInput(f"{final} is a folder", fix="Give -o the name of a file, or ask for a folder with --sandbox.")
    for path in (final, plan.log):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise WrongInput(f"{path} is neither a file nor a folder", fix="Choose another name with -o.")
    # --force too stops here: a slip such as `-o .` must not cost a person's folder.
    if final.is_dir() and not (final / ".singularity.d").is_dir() and any(final.iterdir()):
        raise WrongInput(f"{final} is a folder with other things in it", fix="Choose another name with -o.")
    if plan.log.exists() and not plan.force and not _is_ctks_log(plan.log):
        raise WrongInput(f"{plan.log} exists and is not a log of ctk's", fix="Move it away, or use --force.")
    if not final.exists() or plan.force:
        return
    record = read_record(final)
    if record is None:
        raise WrongInput(f"{final} exists and was not built by ctk", fix="Choose another name with -o, or use --force.")
    if record.target != plan.record.target:
        raise WrongInput(
            f"{final} exists and was built from another target ({record.target})",
            fix="Choose another name with -o, or use --force.",
        )
    if record.changed:
        raise WrongInput(
            f"{final} was opened with `ctk shell`, and what was changed in it would be lost",
            fix=f"Make an image of it (ctk build {shlex.quote(f'{final}/')} -o NAME.sif), choose another name with -o, "
            "or use --force.",
        )


def _check_links(plan: BuildPlan) -> None:
    """Raise WrongInput where a symlink would lead what the build writes to something that ctk did not make.

    --force does not lift it: who cloned a repository knows its links least of all.
    """
    refuse_link(plan.log)
    if plan.sandbox:
        refuse_link(record_beside(plan.output))
    if plan.link is not None and (reason := _why_not_through(plan.link, plan.output)) is not None:
        raise WrongInput(
            f"{plan.link} is a symlink to {plan.output}, {reason}",
            fix="Remove the link, or name the image itself with -o.",
            code="symlink",
        )


def _why_not_through(link: Path, final: Path) -> str | None:
    """Why no image is written through `link`; None where it leads to an image of ctk's, or to a name for a new one."""
    if link.is_symlink() and not is_trusted(owner := link.lstat().st_uid):
        return f"made by {user_name(owner)}"
    if os.path.lexists(final):
        return None if read_record(final) else "which was not built by ctk"
    # A SIF holds its definition as plain text: a shell that reads one called `.bash_profile` runs lines of it.
    if final.suffix != ".sif" and final.name != link.name:
        return "which is not the name of an image"
    return "in a hidden directory" if leads_into_hidden(link) else None


def _is_ctks_log(path: Path) -> bool:
    """Whether a log begins as ctk's do. An empty one may be replaced: a build was killed in its first instant."""
    try:
        with open_regular(path) as file:
            first = file.readline()
    except OSError:
        return False
    return not first or first.startswith(LOG_MARK.encode())
