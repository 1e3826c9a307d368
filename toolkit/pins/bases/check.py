"""Compare the recorded digests of bases with what their registries say now: `ctk bases check`."""

from __future__ import annotations

import queue
import threading
import time
import urllib.error
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import TYPE_CHECKING

from toolkit.pins.bases.registry import Repository, asking, parse_reference
from toolkit.pins.bases.transport import TIMEOUT
from toolkit.recipes.model import DigestOf
from toolkit.support.enums import StrEnum
from toolkit.support.errors import CtkError, ProgramFailed
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.pins.bases.manifests import Manifest, Platform
    from toolkit.pins.bases.registry import Named
    from toolkit.recipes.model import Base

_AT_ONCE = 8  # connections to registries
_USUAL = "x86_64"


class State(StrEnum):
    """What became of the digest of a base, according to its registry."""

    SAME = "same"
    MOVED = "moved"
    GONE = "gone"
    UNPINNED = "unpinned"
    LOGIN_NEEDED = "login-needed"
    UNREACHABLE = "unreachable"

    @property
    def is_answer(self) -> bool:
        """Whether the registry was asked with success."""
        return self not in (State.LOGIN_NEEDED, State.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class Description:
    """What a registry says of the image to start from.

    `size` is compressed, in bytes, and of one image: of an index, that for x86-64 if there is one.
    """

    digest: str
    digest_of: DigestOf
    architectures: tuple[str, ...] = ()
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The state of one base. `tag` is what its tag names now, `image` describes the image to start from from now on.

    `pullable`: whether the recorded digest of a base that moved or is gone can still be pulled; None if that is
    unknown. `login` names the file of the login that the registry required; `problem` says why there is no digest.
    """

    base: Base
    state: State
    tag: Named | None = None
    image: Description | None = None
    pullable: bool | None = None
    login: str | None = None
    problem: CtkError | None = None

    def finding(self) -> Finding | None:
        """What is wrong with the base; None if its digest is the same, or none is recorded."""
        name, reference = self.base.name, self.base.reference
        if self.problem is not None:
            return finding_of(self.problem, f"{name}: {self.problem.message}{_kept(self.pullable, gone=True)}")
        if self.state is State.MOVED and self.tag is not None:
            message = f"{name}: the tag {reference} now names {self.tag.digest}, not {self.base.digest}"
            return Finding(
                "tag-moved",
                Severity.WARNING,
                message + _kept(self.pullable),
                f"`ctk bases check {name} --write` records the new digest in ./defs/bases.toml. The other facts of the "
                "entry are those of the earlier image.",
            )
        return None


def _kept(pullable: bool | None, *, gone: bool = False) -> str:
    if pullable is None:
        return ""
    what = "the recorded digest" if gone else "which"
    return f"; {what} can still be pulled" if pullable else f"; {what} can no longer be pulled"


def finding_of(problem: CtkError, message: str) -> Finding:
    """The finding of an error about a registry.

    Each code is written out, so that the catalogue of codes is known to be complete.
    """
    if problem.code == "no-such-image":
        return Finding("no-such-image", Severity.ERROR, message, problem.fix)
    if problem.code == "registry-login":
        return Finding("registry-login", Severity.ERROR, message, problem.fix)
    if problem.code == "certificate":
        return Finding("certificate", Severity.ERROR, message, problem.fix)
    if problem.code == "registry-content":
        return Finding("registry-content", Severity.ERROR, message, problem.fix)
    return Finding("registry-unreachable", Severity.ERROR, message, problem.fix)


def exit_status(results: Sequence[Checked]) -> int:
    """1 if a base moved or is gone, else 4 if a registry could not be asked, else 0."""
    if any(found.state in (State.MOVED, State.GONE) for found in results):
        return 1
    return 0 if all(found.state.is_answer for found in results) else 4


def check_all(
    bases: Sequence[Base], *, timeout: float, on_step: Callable[[str], None] = lambda _step: None
) -> list[Checked]:
    """Check bases of registries, eight at once, for `timeout` seconds at most; `on_step` gets the progress."""
    waiting: queue.SimpleQueue[Base] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[str, Checked]] = queue.SimpleQueue()
    for base in bases:
        waiting.put(base)
    end = time.monotonic() + timeout

    def work() -> None:
        while (left := end - time.monotonic()) > 0:
            try:
                base = waiting.get_nowait()
            except queue.Empty:
                return
            answers.put((base.name, check_base(base, timeout=min(TIMEOUT, left))))

    for _ in range(min(_AT_ONCE, len(bases))):
        # Daemon threads: the process does not wait at its end for a server that sends nothing.
        threading.Thread(target=work, daemon=True).start()
    found: dict[str, Checked] = {}
    on_step(f"0 of {len(bases)}")
    while len(found) < len(bases):
        try:
            name, answer = answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        found[name] = answer
        on_step(f"{len(found)} of {len(bases)}, {name}")
    return [found.get(base.name) or _late(base, timeout) for base in bases]


def _late(base: Base, timeout: float) -> Checked:
    host = parse_reference(base.reference).host
    problem = ProgramFailed(f"no answer of the registry {host} within {timeout:g} s", code="registry-unreachable")
    return Checked(base, State.UNREACHABLE, problem=problem)


def check_base(base: Base, *, timeout: float = TIMEOUT) -> Checked:
    """Ask the registry of a base what its tag names. An error is a state of the answer."""
    repository = Repository(parse_reference(base.reference), timeout)
    try:
        with asking(base.reference, repository):
            found = _compare(base, repository)
    except CtkError as error:
        state = {"no-such-image": State.GONE, "registry-login": State.LOGIN_NEEDED}.get(error.code, State.UNREACHABLE)
        pullable = _pullable(base, repository) if state is State.GONE else None
        found = Checked(base, state, pullable=pullable, problem=error)
    return replace(found, login=repository.login.origin if repository.login is not None else None)


def _compare(base: Base, repository: Repository) -> Checked:
    tag = repository.named(repository.reference.tag)
    if tag.digest == base.digest:
        return Checked(base, State.SAME, tag, _recorded(base, tag) or describe(repository, tag.digest))
    if base.digest is None:
        return Checked(base, State.UNPINNED, tag, describe(repository, tag.digest))
    if inside := images_of(repository, tag, base.digest):
        size = base.size or repository.manifest(base.digest).size
        architectures = tuple(dict.fromkeys(platform.architecture for platform in inside))
        return Checked(base, State.SAME, tag, Description(base.digest, DigestOf.IMAGE, architectures, size))
    return Checked(base, State.MOVED, tag, describe(repository, tag.digest), _pullable(base, repository))


def images_of(repository: Repository, tag: Named, digest: str) -> list[Platform]:
    """The images with this digest within the index that a tag names; none if it names one image."""
    platforms = repository.manifest(tag.digest).platforms if tag.is_index else ()
    return [platform for platform in platforms if platform.digest == digest]


def _recorded(base: Base, tag: Named) -> Description | None:
    """The description that the entry of a base has already: what a digest names never changes. None if incomplete."""
    kind = DigestOf.INDEX if tag.is_index else DigestOf.IMAGE
    complete = base.size is not None and base.architectures
    return Description(tag.digest, kind, base.architectures, base.size) if complete else None


def describe(repository: Repository, name: str) -> Description:
    """What a tag or a digest names. Raises what `Repository` raises."""
    manifest = repository.manifest(name)
    architectures = architectures_of(repository, manifest)
    if not manifest.is_index:
        return Description(manifest.digest, DigestOf.IMAGE, architectures, manifest.size)
    usual = [image.digest for image in manifest.platforms if image.architecture == _USUAL]
    chosen = next(iter([*usual, *(image.digest for image in manifest.platforms)]), None)
    size = repository.manifest(chosen).size if chosen is not None else None
    return Description(manifest.digest, DigestOf.INDEX, architectures, size)


def architectures_of(repository: Repository, manifest: Manifest) -> tuple[str, ...]:
    """The architectures of an index, or the one of an image. Raises what `Repository` raises."""
    if not manifest.is_index:
        return (repository.architecture(manifest),)
    return tuple(dict.fromkeys(image.architecture for image in manifest.platforms))


def _pullable(base: Base, repository: Repository) -> bool | None:
    """Whether the registry still has the recorded digest; None if there is none, or no answer."""
    if base.digest is None:
        return None
    try:
        repository.named(base.digest)
    except urllib.error.HTTPError as error:
        return False if error.code == 404 else None
    except (OSError, HTTPException, ValueError):
        return None
    return True
