"""The guard of a layered build: the differences that the guard inside a flat build finds, from the layers' trees.

The rules and sentences are the payload's own (`payload/compare.py`).
"""

from __future__ import annotations

import json
import posixpath
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.rootfs import Rootfs
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.inventory.knowledge.frameworks import satisfies
from toolkit.pins.guard.layer_state import Touched, search_order, states, view_of, view_over
from toolkit.pins.guard.payload import compare, log_lines
from toolkit.pins.guard.script import lock_for_guard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from toolkit.inventory.formats.tree import Tree
    from toolkit.pins.guard.layer_state import View
    from toolkit.pins.lock.model import Lock

_DPKG = "/var/lib/dpkg/info"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the guard says: `lines` as they belong in the build's log; `passed` is False if they end the build.

    `sites` are the site directories, without symlinks, in which it looked for distributions.
    """

    passed: bool
    lines: tuple[str, ...] = ()
    sites: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GuardedLayers:
    """The layers of a build over its base, as squashfs files, of each step the lowest first.

    A step that changed nothing has none.
    """

    apt: tuple[Path, ...] = ()
    packages: tuple[Path, ...] = ()
    tail: tuple[Path, ...] = ()


def judge_base(lock: Lock, base: Path) -> Judgement:
    """Whether `base` is the one of the lock: to be asked before anything is installed."""
    with open_image(base) as rootfs:
        return base_judged(_document(lock), rootfs)


def judge_apt(lock: Lock, base: Path, layer: Path) -> Judgement:
    """Whether the layer of apt alone ends the build: asked before packages are installed, as in a flat build.

    What else there is to say of it is part of the judgement of all layers.
    """
    judged = judge_layers(lock, base, GuardedLayers(apt=(layer,)))
    return Judgement(True) if judged.passed else judged


def judge_layers(lock: Lock, base: Path, layers: GuardedLayers, searched: tuple[str, ...] = ()) -> Judgement:
    """Whether the layers change what the base, or the lock, protects. Only what they touch is read.

    `searched` are site directories that the image's Python searches: a `.pth` file can name some that a search for
    their usual names does not find.
    """
    with ExitStack() as stack:
        rootfs = stack.enter_context(open_image(base))

        def opened(paths: tuple[Path, ...]) -> list[Squashfs]:
            trees = []
            for path in paths:
                trees.append(Squashfs(path))
                stack.callback(trees[-1].close)
            return trees

        trees = [opened(paths) for paths in (layers.apt, layers.packages, layers.tail)]
        executable = lock.base.executable
        return layers_judged(_document(lock), rootfs, *trees, executable=executable, searched=searched)


def base_judged(lock: dict[str, Any], base: Rootfs) -> Judgement:
    """As `judge_base`, of a tree; `lock` is what the guard has in a definition."""
    state = {"copies": list(view_of(base).copies.values())}
    lines = log_lines.contradiction_lines(list(compare.contradictions(lock, state)))
    return _judgement(not lines, lines)


def layers_judged(
    lock: dict[str, Any],
    base: Rootfs,
    apt: Sequence[Tree],
    packages: Sequence[Tree],
    tail: Sequence[Tree],
    *,
    executable: str | None = None,
    searched: tuple[str, ...] = (),
) -> Judgement:
    """As `judge_layers`, of trees; `executable` is the Python of the lock."""
    at_base = view_of(base, searched)
    by_apt, after_apt = _with_layers(at_base, apt, searched)
    by_packages, installed = _with_layers(after_apt, packages, searched)
    by_tail, finished = _with_layers(installed, tail, searched)
    notes: list[str] = []
    if apt:
        order = search_order(after_apt.rootfs, executable)
        old, new = states(lock, at_base, after_apt, by_apt)
        owner = _owner_in(after_apt.rootfs, by_apt)
        found = compare.changes_by_apt(lock, old, new, _breaks, order, owner)
        if found:
            return _judgement(False, log_lines.difference_lines(found, by_apt=True))
        notes += compare.hidden_copies(lock, old, new, order, owner)
    old, new = states(lock, after_apt, finished, by_packages | by_tail)
    found = compare.compare(lock, old, new, _breaks)
    own = compare.added(lock)
    if own["protected"]:
        found += compare.compare(own, *states(own, installed, finished, by_tail), _breaks)
    if found:
        return _judgement(False, log_lines.difference_lines(found))
    notes += compare.other_changes(lock, old, new)
    unchanged = log_lines.UNCHANGED.format(names=compare.names_of(lock))
    lines = [unchanged, *(log_lines.NOTE.format(what=note) for note in notes)]
    return replace(_judgement(True, lines), sites=frozenset(finished.sites))


def _with_layers(earlier: View, layers: Sequence[Tree], searched: tuple[str, ...]) -> tuple[Touched, View]:
    if not layers:
        return Touched(), earlier
    alone = [Rootfs(layer, earlier.rootfs.label, "layer") for layer in layers]
    touched = Touched.by(alone)
    return touched, view_over(earlier, earlier.rootfs.over(layers), touched, alone, searched)


def _document(lock: Lock) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lock_for_guard(lock))
    return document


def _judgement(passed: bool, lines: list[str]) -> Judgement:
    return Judgement(passed, tuple(log_lines.PREFIX + line for line in lines))


def _breaks(specifier: str, version: str) -> bool:
    return not satisfies(version, specifier)


def _owner_in(rootfs: Rootfs, touched: Touched) -> Callable[[str], str]:
    """As `dpkg-query --search` does, from its lists of files, those of new packages first."""

    def owner(path: str) -> str:
        lists = [posixpath.join(_DPKG, name) for name in rootfs.names(_DPKG) if name.endswith(".list")]
        for listed in sorted(lists, key=lambda listed: not touched.covers(listed)):
            if path in (rootfs.read_text(listed) or "").splitlines():
                return posixpath.basename(listed).removesuffix(".list").partition(":")[0]
        return "a Debian package"

    return owner
