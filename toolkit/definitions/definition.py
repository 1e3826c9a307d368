"""From a recipe to the text of its definition: deterministic, and complete without ctk."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit import __version__
from toolkit.definitions.quoting import file_path, header_value, variable_word
from toolkit.definitions.sections import divided
from toolkit.definitions.steps import StepName, beginning, joined, steps
from toolkit.pins.bases.present import require_base
from toolkit.pins.guard.script import END_OF_FILE, guarded
from toolkit.pins.guard.trials import import_step
from toolkit.pins.store import locked_base
from toolkit.recipes.model import Bootstrap
from toolkit.support.errors import WrongInput
from toolkit.support.templates import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.definitions.steps import Input, Step
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Base, Recipe


@dataclass(frozen=True, slots=True)
class Definition:
    """The text of a definition, and what it is called."""

    name: str
    text: str


def define(recipe: Recipe, *, lock: Lock | None = None, mirror: str | None = None, relabel: bool = False) -> Definition:
    """The definition of `recipe`: its steps as sections of one text.

    `mirror` is the Debian archive for a base that debootstrap makes; `relabel` is explained at
    `toolkit.definitions.steps.steps`.

    With a lock, exactly its files are installed, under the guard that travels with it. Without one the recipe may
    name no packages: only its files, environment and script are written then.

    Raises WrongInput if a value is not allowed in a definition.
    """
    where = recipe.path
    chosen = steps(recipe, lock, relabel=relabel)
    return _render(
        recipe.name,
        header=_header(locked_base(recipe, lock) if lock else recipe.base, mirror),
        what=f"recipe {recipe.name}",
        labels={"ctk.recipe": recipe.name},
        files=[file_line(copied, f"{where}: a path in [[files]]") for step in chosen for copied in step.inputs],
        post=_post(chosen, recipe, lock),
        environment=[
            (name, variable_word(name, value, f"{where}: environment.{name}")) for name, value in recipe.environment
        ],
    )


def trial_script(recipe: Recipe, lock: Lock) -> str:
    """What `%post` of the recipe's definition does up to its import step, but for the files and `post` of the user.

    Nor does it run the check of the recipe, which may need both.
    """
    return _post(steps(replace(recipe, files=(), post=""), lock), replace(recipe, check=()), lock)


def _post(chosen: Sequence[Step], recipe: Recipe, lock: Lock | None) -> str:
    """`%post`: the scripts of the steps in one shell, with a lock under the guard. Empty if there are none."""
    apt = joined(step for step in chosen if step.name is StepName.APT)
    rest = joined(step for step in chosen if step.name is not StepName.APT)
    if not (apt or rest):
        return ""
    if lock is None:
        return "\n".join(filter(None, (beginning(), apt, rest)))
    wanted = import_step(lock, recipe.import_skip, recipe.environment, recipe.check)
    return f"{beginning()}\n\n{guarded(lock, rest, wanted, apt=apt)}"


def check(recipe: Recipe) -> None:
    """Raise WrongInput if `recipe` cannot become an image, before its packages are resolved.

    A value is not allowed in a definition, a base on this machine is no image, or a file to copy does not exist.
    """
    require_base(recipe)
    for number, copy in enumerate(recipe.files, 1):
        if not copy.source.exists():
            raise WrongInput(
                f"{recipe.path}: files[{number}].from: there is no {copy.source}",
                fix=f"A relative path starts from the directory of the recipe, {recipe.path.parent}.",
                code="wrong-file",
            )
    define(replace(recipe, packages=()), mirror="http://any.example/debian")


def define_copy(base: Base) -> Definition:
    """The definition of an image that is `base` as it is, with no more than the user's own site directory shut out."""
    return _render("image", header=_header(base, None), what=f"the image {base.name}", labels={})


def _render(name: str, **values: object) -> Definition:
    parts = {"files": (), "environment": (), "post": "", **values}
    text = render("defs/templates/image.def.j2", name=name, version=__version__, **parts)
    return Definition(name, divided(text, END_OF_FILE))


def base_header(base: Base, mirror: str | None) -> str:
    """The header of a definition that is the base and nothing else. Raises as `define` does."""
    return "".join(f"{name}: {value}\n" for name, value in _header(base, mirror))


def _header(base: Base, mirror: str | None) -> list[tuple[str, str]]:
    reference = header_value(base.pinned_reference, "the base's reference")
    if base.bootstrap != Bootstrap.DEBOOTSTRAP:
        return [("Bootstrap", base.bootstrap), ("From", reference)]
    if mirror is None:
        raise WrongInput(
            f"the base {base.name} is built from a Debian archive, but no mirror is configured",
            fix="Set `mirror` in the site settings (/etc/ctk/site.toml or the file in CTK_SITE), or "
            "use --base FILE.sif.",
        )
    return [
        ("Bootstrap", base.bootstrap),
        ("OSVersion", reference),
        ("MirrorURL", header_value(mirror, "the mirror")),
        *([("Include", " ".join(base.apt))] if base.apt else []),
    ]


def file_line(copied: Input, what: str) -> str:
    """What copies an input, for a section `%files`; `what` names it in an error."""
    return " ".join(file_path(path, what) for path in (str(copied.source), copied.path))
