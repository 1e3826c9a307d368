"""The location of locks, and the lock of a command: found, updated, or refused as out of date."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from toolkit.pins.bases.facts import gather_facts
from toolkit.pins.bases.present import require_base
from toolkit.pins.bases.steady import NOT_HERE, PresentBase, require_unchanged, state_of
from toolkit.pins.lock.changes import LockChange, compare_locks
from toolkit.pins.lock.lockfile import load_lock, locked_architectures, write_lock
from toolkit.pins.lock.model import Inventoried
from toolkit.pins.lock.upgrade import NO_UPGRADE, Upgrade
from toolkit.pins.locking import contradictions, input_hash, is_current, make_lock, refusal
from toolkit.recipes.architectures import architecture_of, for_architecture, lock_command
from toolkit.recipes.model import ARCHITECTURES, Bootstrap
from toolkit.support.content import content_digest
from toolkit.support.errors import CheckFailed, CtkError, WrongInput
from toolkit.support.files import refuse_link
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.catalogue import Catalogue
    from toolkit.recipes.model import Base, Recipe


NO_DIGEST = (
    "the digest of the base is unknown, because its registry could not be reached: the tag may move to another image"
)


class Policy(Enum):
    """What to do with a missing or outdated lock: write it to `./defs`, refuse it, or make a temporary one."""

    UPDATE = "update"
    LOCKED = "locked"
    PREVIEW = "preview"


@dataclass(frozen=True, slots=True)
class Found:
    """The lock to work with; `change` says what became of the earlier one at `path`, None if it was current."""

    lock: Lock
    path: Path
    change: LockChange | None = None


@dataclass(frozen=True, slots=True)
class Locks:
    """The locks that a command in the current directory sees. `area` is the work area, `bases` the catalogue's.

    `warn` receives warnings for the user if the lock could be made.
    """

    directory: Path
    area: Path
    bases: Mapping[str, Base]
    warn: Callable[[str], None]
    policy: Policy = Policy.UPDATE

    @classmethod
    def of(
        cls,
        catalogue: Catalogue,
        area: Path,
        warn: Callable[[str], None] = lambda _text: None,
        policy: Policy = Policy.UPDATE,
    ) -> Locks:
        return cls(catalogue.own, area, catalogue.bases(), warn, policy)

    @property
    def cache(self) -> Path:
        return self.area / "cache"

    def path(self, recipe: Recipe) -> Path:
        """The recipe's lock; on another base than its own (`--base`) one in the cache, by what was asked.

        Raises WrongInput if the recipe's lock is a symlink: it would be replaced by what is locked next.
        """
        if recipe.rebased:
            return self._cached_path(recipe)
        path = self.directory / f"{recipe.name}.lock.toml"
        refuse_link(path)
        return path

    def _cached_path(self, recipe: Recipe) -> Path:
        name = input_hash(recipe, self.local_digest(recipe), None).removeprefix("sha256:")
        return self.cache / "locks" / f"{name}.lock.toml"

    def local_digest(self, recipe: Recipe) -> str | None:
        """The digest of a base on this machine; None for any other. Raises WrongInput if no image is there."""
        require_base(recipe)
        return content_digest(recipe.base.path, self.cache) if recipe.base.is_local else None

    def current(self, recipe: Recipe) -> Lock | None:
        """The recipe's lock; None if it is missing or out of date. Raises WrongInput if it was edited."""
        path = self.path(recipe)
        lock = load_lock(path, architecture_of(recipe))
        return lock if lock is not None and is_current(lock, recipe, self.local_digest(recipe)) else None

    def locked_digest(self, recipe: Recipe) -> str | None:
        """The digest of the recipe's base in its lock, current or not; None if there is none for this reference."""
        path = self.path(recipe)
        lock = load_lock(path, architecture_of(recipe)) if recipe.base.bootstrap == Bootstrap.DOCKER else None
        return lock.base.digest if lock is not None and lock.base.reference == recipe.base.reference else None

    def pinned(self, recipe: Recipe, digest: str | None = None) -> Recipe:
        """A recipe without packages on its base by the recorded digest, else by `digest`, else by the locked one."""
        if recipe.base.bootstrap != Bootstrap.DOCKER or recipe.base.digest is not None:
            return recipe
        return replace(recipe, base=replace(recipe.base, digest=digest or self.locked_digest(recipe)))

    def find(self, recipe: Recipe, base: PresentBase = NOT_HERE) -> Found | None:
        """What `for_build` finds; None if nothing is installed that a guard could watch.

        Raises CheckFailed if the lock may not be updated and is out of date, or where packages conflict with the base.
        """
        if not recipe.needs_guard:
            return None
        try:
            return self.for_build(recipe, base)
        except WrongInput as error:
            if error.code != "no-python" or recipe.packages:
                raise
            if recipe.check:
                message = f"{recipe.path}: [check] needs Python in the base, and {recipe.base.name} has none"
                raise WrongInput(
                    message, fix="Remove [check], or choose a base with Python.", code=error.code
                ) from error
            return None

    def for_build(self, recipe: Recipe, base: PresentBase = NOT_HERE, *, write: bool = True) -> Found:
        """The lock to build with, written unless `write` is false.

        One that is missing or out of date is treated as the policy says; an update keeps the versions of the earlier
        one. Once the image of the base is here, a lock that was made from recorded facts is regenerated from the image,
        and a contradiction between the two is CheckFailed. So is a missing or outdated lock (`no-lock`, `stale-lock`)
        where only a current one will do.
        """
        require_base(recipe)
        path, architecture = self.path(recipe), architecture_of(recipe)
        earlier = load_lock(path, architecture)
        current = earlier is not None and is_current(earlier, recipe, self.local_digest(recipe))
        if earlier is not None and current and (self._is_final(earlier) or base.image is None):
            return Found(earlier, path)
        if self.policy is Policy.LOCKED:
            # Without a Python there is no lock.
            gather_facts(recipe.base, self.cache, architecture=architecture, image=base.image, digest=base.digest)
            raise refusal(recipe, path, earlier)
        # What is only printed is kept in the cache if nothing else says which versions: it is the same tomorrow.
        is_preview = self.policy is Policy.PREVIEW
        target = self._cached_path(recipe) if is_preview and earlier is None else path
        kept = load_lock(target, architecture) if target != path else None
        if kept is not None and (self._is_final(kept) or base.image is None):
            return Found(kept, path, compare_locks(None, kept))
        day = earlier.exclude_newer if earlier is not None else None
        lock = self.make(recipe, base, earlier=earlier, exclude_newer=day)
        if write and (not is_preview or earlier is None):
            self._write(lock, target)
        return Found(lock, path, compare_locks(earlier, lock))

    def require(self, recipe: Recipe) -> None:
        """Raise CheckFailed (`stale-lock`, `no-lock`) if the policy is LOCKED and packages have no current lock."""
        if self.policy is Policy.LOCKED and recipe.packages and self.current(recipe) is None:
            path = self.path(recipe)
            raise refusal(recipe, path, load_lock(path, architecture_of(recipe)))

    def judge_others(self, recipe: Recipe, judged: Collection[str]) -> tuple[Finding, ...]:
        """A warning for each section of other architectures than those `judged` that `recipe` cannot be built from.

        With `--base`, each request has a lock file of its own. Of a base on this machine nobody here knows what it
        holds on a host of another architecture.
        """
        path = self.path(recipe)
        if recipe.base.is_local or recipe.rebased:
            return ()
        others = [name for name in locked_architectures(path) if name in ARCHITECTURES and name not in judged]
        return tuple(found for name in others for found in self._judge_other(for_architecture(recipe, name), path))

    def _judge_other(self, recipe: Recipe, path: Path) -> Iterator[Finding]:
        architecture = architecture_of(recipe)
        try:
            lock = load_lock(path, architecture)
        except WrongInput as error:
            yield Finding("refused-section", Severity.WARNING, error.message, error.fix)
            return
        if lock is not None and not is_current(lock, recipe, None):
            text = f"the section for {architecture} of {path} is out of date"
            yield Finding("stale-section", Severity.WARNING, text, lock_command(recipe.name, architecture))

    def _is_final(self, lock: Lock) -> bool:
        """Whether the base needs no second check. With a policy of LOCKED the guard compares it in the build."""
        return lock.base.inventory is Inventoried.READ or self.policy is Policy.LOCKED

    def _write(self, lock: Lock, path: Path) -> None:
        for finding in lost_sections(write_lock(lock, path), lock.recipe, path):
            self.warn(f"{finding.message}. Fix: {finding.fix}")

    def make(
        self,
        recipe: Recipe,
        base: PresentBase = NOT_HERE,
        *,
        earlier: Lock | None = None,
        upgrade: Upgrade = NO_UPGRADE,
        exclude_newer: str | None = None,
    ) -> Lock:
        """Make a lock; the caller writes it.

        `upgrade` is what may become newer than `earlier` has it. The registry is asked for the base's digest only where
        neither the caller nor `earlier` knows it, or with an upgrade of everything. Raises CheckFailed (`base-changed`)
        if a base on this machine changes during that.
        """
        from toolkit.pins.index.uv import open_uv

        require_base(recipe)
        state = base.state or state_of(recipe.base)
        same = earlier is not None and not upgrade.everything and earlier.base.reference == recipe.base.reference
        known = earlier.base.digest if earlier is not None and same else None
        facts = gather_facts(
            recipe.base,
            self.cache,
            architecture=architecture_of(recipe),
            image=base.image,
            digest=base.digest or known,
        )
        if base.image is not None and (found := contradictions(recipe.base, facts.target)):
            raise CheckFailed(
                f"the base {recipe.base.name} differs from its entry in bases.toml: {'; '.join(found)}",
                fix="Correct its entry in bases.toml, or choose another base.",
                code="base-contradicts",
            )
        lock = make_lock(
            open_uv(self.area),
            recipe,
            facts,
            bases=self.bases.values(),
            exclude_newer=exclude_newer,
            earlier=earlier,
            upgrade=upgrade,
        )
        if facts.trouble:
            # Notes about the network are temporary, and not part of a lock that others must reproduce.
            self.warn(facts.trouble)
            lock = replace(lock, notes=(NO_DIGEST, *lock.notes))
        require_unchanged(state)
        return lock


def lost_sections(architectures: Iterable[str], name: str, path: Path) -> tuple[Finding, ...]:
    """A warning for each section of a lock file that could not be kept when the file was written."""
    return tuple(
        Finding(
            "lost-section",
            Severity.WARNING,
            f"the section for {architecture} was not readable, and is not in {path} any more",
            lock_command(name, architecture),
        )
        for architecture in architectures
    )


def locked_base(recipe: Recipe, lock: Lock) -> Base:
    """The recipe's base by the digest that was locked: a tag that moved since changes nothing."""
    return replace(recipe.base, digest=lock.base.digest) if recipe.base.bootstrap == Bootstrap.DOCKER else recipe.base


def moved_tag(recipe: Recipe, lock: Lock) -> str | None:
    """What the registry says of a locked tag now: a sentence if it is not the locked image any more."""
    from toolkit.pins.bases.registry import fetch_digest

    if lock.base.bootstrap != Bootstrap.DOCKER or lock.base.digest is None or recipe.base.digest is not None:
        return None
    try:
        now = fetch_digest(recipe.base.reference)
    except CtkError as error:
        return f"{error.message}; ctk cannot check whether the tag still names the locked image"
    if now == lock.base.digest:
        return None
    return f"the tag {recipe.base.reference} moved: it names {now} now, the lock stays with {lock.base.digest}"
