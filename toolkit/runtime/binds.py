"""Symlinks in a working directory that point outside the container's mounts, and the bind for each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.paths import home
from toolkit.support.processes import command_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Mounted in every container besides the home and the working directory (apptainer.conf: mount home, mount tmp, …).
_ALWAYS_BOUND = (Path("/tmp"), Path("/var/tmp"), Path("/proc"), Path("/sys"), Path("/dev"))  # noqa: S108
# An image has its own; to bind the host's over them would break it. A virtual environment's `python` leads there.
_OF_THE_IMAGE = tuple(map(Path, ("/bin", "/boot", "/etc", "/lib", "/lib64", "/sbin", "/usr", "/var/lib")))
_DEEPEST = 3
_MAX_ENTRIES = 5_000
_MAX_HOPS = 40  # as many as Linux follows (path_resolution(7))


@dataclass(frozen=True, slots=True)
class HiddenLink:
    """A symlink to `target`, outside the container's mounts; `bind` would mount it."""

    link: Path
    target: Path
    bind: Path


def unbound_symlinks(directory: Path, bound: Iterable[Path]) -> tuple[HiddenLink, ...]:
    """The links in `directory`, three levels deep, that leave `directory` and the `bound` directories on their way.

    Sandboxes in `directory` are left out.

    Links that lead nowhere on this host and those into the system's own directories are left out. At most 5000 entries
    are looked at: this is a hint before a run, not an inspection.
    """
    visible = tuple(
        {form for path in (directory, *bound) for form in (Path(os.path.normpath(path.absolute())), path.resolve())}
    )
    found = []
    for link in _links(directory):
        target = _first_step_outside(link, visible)
        if target is not None and not _inside(target, _OF_THE_IMAGE) and target.exists():
            # A data set of many links to files of one directory needs that directory once.
            bind = target if target.is_dir() or target.parent == Path("/") else target.parent
            found.append(HiddenLink(link.relative_to(directory), target, bind))
    return tuple(found)


def _links(directory: Path) -> Iterator[Path]:
    seen = 0
    level = [directory]
    for _ in range(_DEEPEST):
        below = []
        for place in level:
            try:
                entries = sorted(os.scandir(place), key=lambda entry: entry.name)
            except OSError:
                continue
            if place != directory and any(entry.name == ".singularity.d" for entry in entries):
                continue  # a sandbox: its links are those of an image, and lead to places of that image
            for entry in entries:
                seen += 1
                if seen > _MAX_ENTRIES:
                    return
                if entry.is_symlink():
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
        level = below


def _first_step_outside(link: Path, visible: tuple[Path, ...]) -> Path | None:
    """Follow `link` one link at a time; the first place on the way that is in none of `visible`, or None.

    Every step counts: `data -> ~/sets` is invisible where `~/sets` itself leads to another disk.
    """
    current = link
    for _ in range(_MAX_HOPS):
        step = _first_link_of(current, visible)
        if step is None:
            return None
        current = Path(os.path.normpath(step.parent / step.readlink() / current.relative_to(step)))
        if not _inside(current, visible):
            return current
    return None


def _first_link_of(path: Path, visible: tuple[Path, ...]) -> Path | None:
    """The uppermost link in `path` in a visible directory. The bind itself follows links above such a directory."""
    for part in (*reversed(path.parents), path):
        if _inside(part.parent, visible) and part.is_symlink():
            return part
    return None


def _inside(path: Path, directories: Iterable[Path]) -> bool:
    return any(path.is_relative_to(directory) for directory in directories)


def links_to_bind(directory: Path, binds: Iterable[str]) -> tuple[str, ...]:
    """The binds that show what links in `directory` lead to, where a container with `binds` would not show it.

    Raises WrongInput for a path that the runtime cannot bind.
    """
    found = dict.fromkeys(link.bind for link in _unseen(directory, binds))
    for path in found:
        if any(character in str(path) for character in ":,") or not str(path).isprintable():
            raise WrongInput(
                f"--bind-links: {path} has a colon or a comma in its name, which the runtime reads as its own",
                fix="Rename the directory, or let the link lead to another one.",
            )
    return tuple(map(str, found))


def hidden_links(directory: Path, binds: Iterable[str]) -> tuple[Finding, ...]:
    """A warning for each place that links in `directory` lead to and a container started there would not show.

    `binds` are those the container gets anyway, `SRC[:DST[:OPTS]]`: what they show, they show at DST.
    """
    links: dict[Path, list[HiddenLink]] = {}
    for link in _unseen(directory, binds):
        links.setdefault(link.bind, []).append(link)
    return tuple(_finding(bind, group) for bind, group in links.items())


def _unseen(directory: Path, binds: Iterable[str]) -> tuple[HiddenLink, ...]:
    shown = [*_ALWAYS_BOUND, *map(_destination, binds)]
    if (mine := home()) is not None:
        shown.append(mine)
    return unbound_symlinks(directory, shown)


def _destination(bind: str) -> Path:
    source, _, rest = bind.partition(":")
    return Path(rest.partition(":")[0] or source)


def _finding(bind: Path, links: list[HiddenLink]) -> Finding:
    first, others = links[0], len(links) - 1
    which = str(first.link) + (f" (and {others} more)" if others else "")
    return Finding(
        "link-leads-out",
        Severity.WARNING,
        f"{which} leads to {first.target}, which is not mounted in the container",
        f"Add {command_line(['--bind', str(bind)])}",
    )
