"""Builds without a network: what must be on this host before, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.bases import find_base, known_digest
from toolkit.builds.bootstrapped import kept_bootstrapped
from toolkit.builds.files import quoted
from toolkit.builds.tags import remembered_digest
from toolkit.builds.target import TargetKind, bases_of_definition
from toolkit.definitions.definition import base_header
from toolkit.definitions.layered import LayerName
from toolkit.pins.index.downloads import kept_files
from toolkit.pins.lock.files import fetched_by_build, wanted_files
from toolkit.recipes.model import Bootstrap
from toolkit.support.content import others_can_change_in, private_copy
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.processes import command_line
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.builds.context import BuildContext
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.request import BuildRequest
    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Base, Recipe
    from toolkit.store.store import Store

_REMOTE = (Bootstrap.DOCKER, Bootstrap.DEBOOTSTRAP)
_MAX_SHOWN = 8


def require_fetched(request: BuildRequest, context: BuildContext) -> None:
    """Raise MissingOnHost (`not-fetched`) if an offline build lacks base, lock or image; no server is asked.

    What a step lacks is known only if the step has to run: `require_step` says it. Raises WrongInput (`wrong-usage`)
    for what ctk cannot fetch beforehand: a definition that starts from an image of a registry.
    """
    if not context.offline:
        return
    if request.recipe is None:
        _refuse_remote(request, context)
        return
    if missing := list(missing_beginning(request.recipe, context)):
        raise not_fetched(request.recipe.name, missing)


def missing_beginning(recipe: Recipe, context: BuildContext) -> Iterator[str]:
    """What of `recipe` each offline build needs and is not on this host: a lock, the base."""
    if recipe.packages and context.locks.current(recipe) is None:
        yield f"a current lock ({context.locks.path(recipe)})"
    if (base := missing_base(recipe, context)) is not None:
        yield base


def missing_base(recipe: Recipe, context: BuildContext) -> str | None:
    """The base of `recipe` for a message if it is not on this host; None if it is."""
    base = recipe.base
    if base.bootstrap == Bootstrap.DEBOOTSTRAP:
        if kept_bootstrapped(base, context.mirror, context.store) is not None:
            return None
        return f"an image of the base {base.name}, which debootstrap makes from a Debian archive"
    if base.bootstrap != Bootstrap.DOCKER:
        return None
    digest = known_digest(recipe, context.locks)
    if digest is None:
        return f"the base {base.name} (the digest of {base.reference} is not known here)"
    known = find_base(digest, context.store, base)
    return f"the base {base.name} ({base.pinned_reference})" if known is None else None


def require_step(recipe: Recipe, lock: Lock | None, context: BuildContext, *, packages: bool, apt: bool) -> None:
    """Raise MissingOnHost (`not-fetched`) if a step of an offline build would need a network.

    `packages` and `apt` say which of these steps have to run: their layers are not in the store.
    """
    if not context.offline:
        return
    needed = needed_from_network(recipe, lock)
    layered = [what for layer, what in needed if (apt if layer is LayerName.APT else packages)]
    files = missing_files(lock, context.store) if packages and lock is not None else []
    if layered or files:
        raise not_fetched(recipe.name, [*layered, *files], layered=bool(layered))


def needed_from_network(recipe: Recipe, lock: Lock | None) -> Iterator[tuple[LayerName, str]]:
    """What is no file of the lock: a build takes it from the network, unless the layer with it is kept."""
    if recipe.apt:
        yield LayerName.APT, f"the Debian packages {' '.join(recipe.apt)}"
    for package in fetched_by_build(lock) if lock is not None else ():
        yield LayerName.PACKAGES, f"{package.name} ({package.url or 'no hash is known'})"


def missing_files(lock: Lock, store: Store) -> list[str]:
    """The package files of `lock` that are not on this host."""
    wanted = wanted_files(lock)
    kept = kept_files(wanted, store)
    return [file.name for file in wanted if file.sha256 not in kept]


def not_fetched(name: str, missing: Sequence[str], *, layered: bool = False) -> MissingOnHost:
    """The error for an offline build that lacks something. `layered`: `ctk fetch` keeps some of it as layers alone."""
    shown = ", ".join(missing[:_MAX_SHOWN])
    more = f", and {len(missing) - _MAX_SHOWN} more" if len(missing) > _MAX_SHOWN else ""
    fix = f"On a host with a network and the same work area: {command_line(['ctk', 'fetch', name])}"
    if layered:
        fix += (
            "\nDebian packages and packages at an address are kept as layers: only a layered build without --force, "
            "and with the same --compression, uses them."
        )
    return MissingOnHost(
        f"{name} cannot be built offline: {count(len(missing), 'input')} not on this host: {shown}{more}",
        fix=fix,
        code="not-fetched",
    )


def _refuse_remote(request: BuildRequest, context: BuildContext) -> None:
    """Only the base of a recipe or a reference is kept: the runtime itself would pull any other."""
    name = request.target.text
    if request.base is not None and request.base.bootstrap in _REMOTE and not _is_kept(request.base, context):
        raise MissingOnHost(
            f"the image of {name} is not on this host",
            fix=f"On a host with a network and the same work area: {command_line(['ctk', 'build', name])}",
            code="not-fetched",
        )
    if request.target.kind is not TargetKind.DEFINITION:
        return
    for base in bases_of_definition(Path(name).read_text(encoding="utf-8", errors="replace")):
        if base.bootstrap in _REMOTE:
            raise WrongInput(
                f"{name} starts from {base.reference}, which --offline cannot pull",
                fix="Write a recipe with this base (`ctk new`), then run `ctk fetch`.",
                code="wrong-usage",
            )


def _is_kept(base: Base, context: BuildContext) -> bool:
    digest = base.digest or remembered_digest(base.reference, context.locks.cache)
    return digest is not None and find_base(digest, context.store, base) is not None


@dataclass(frozen=True, slots=True)
class KeptBase:
    """The image of `base` in the store, for a flat build: the runtime itself would pull it once more, and keep a second
    copy in its own cache, or run debootstrap again. Or the copy of a base that other users can change: of a sandbox it
    is made here.

    `mirror` is the Debian archive of a base that debootstrap made. `link` is a name of the image, next to which the
    runtime is started: no path of this host gets into the image.
    """

    base: Base
    image: Path
    link: Path
    cache: Path
    mirror: str | None = None

    @classmethod
    def of(cls, plan: BuildPlan, context: BuildContext, directory: Path) -> KeptBase | None:
        """The base of a build, in `directory`; None if it is not here, or is one of this machine that nobody else can
        change.

        The script of a preview does not depend on what is here, unless it is to run without a network.
        """
        start, image = plan.start, plan.base.image
        if (context.preview and not context.offline) or start is None or image is None:
            return None
        is_copied = start.bootstrap == Bootstrap.LOCALIMAGE and not context.preview
        if start.bootstrap in _REMOTE or (is_copied and (image != start.path or _is_open_sandbox(image))):
            return cls(start, image, directory / "base.sif", context.locks.cache, context.mirror)
        return None

    def shell(self) -> str:
        return f"ln -s -- {quoted(self.image)} {quoted(self.link)}"

    def run(self, _state: object = None) -> None:
        if self.image.is_dir():
            private_copy(self.image, self.link, self.cache)
        else:
            self.link.symlink_to(self.image)

    def definition(self, text: str) -> str:
        """The definition `text`, which starts from the registry or the archive, as one that starts from the link."""
        reference = self.base.pinned_reference
        before, found, after = text.partition(f"\n{base_header(self.base, self.mirror)}")
        if not found:  # the runtime would ask a server
            raise ValueError(f"the definition does not start from {reference}")
        if self.base.is_local:
            return f"{before}\nBootstrap: localimage\nFrom: {self.link.name}\n{after}"
        if self.base.bootstrap == Bootstrap.DEBOOTSTRAP:
            reference += f" {self.mirror}"
        # The runtime keeps no comment before the header; the label tells what the image was made from.
        after = after.replace("\n%labels\n", f"\n%labels\n    ctk.base {reference}\n", 1)
        return f"{before}\nBootstrap: localimage\nFrom: {self.link.name}\n{after}"


def _is_open_sandbox(image: Path) -> bool:
    return image.is_dir() and others_can_change_in(image)
