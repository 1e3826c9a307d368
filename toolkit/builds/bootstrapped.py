"""Bases that debootstrap makes: made once for one state of the archive, and kept as a SIF like any other base.

The state is the hash of the suite's InRelease, which names every package index by its hash (Debian policy of
repositories, wiki.debian.org/DebianRepository/Format). The signature is checked by debootstrap.
"""

from __future__ import annotations

import hashlib
import re
from http.client import HTTPException
from typing import TYPE_CHECKING

from toolkit.builds.pulling import Source, make, turn
from toolkit.definitions.definition import base_header
from toolkit.pins.bases.transport import fetch
from toolkit.recipes.architectures import host_architecture
from toolkit.store.store import Kind
from toolkit.support.files import make_directory, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.builds.pulling import Maker
    from toolkit.recipes.model import Base
    from toolkit.store.store import Store

_TIMEOUT = 10.0  # seconds without a byte from the archive
_STATES = "archives"  # in the store: which state of an archive a base was last made from
_STATE = re.compile(r"[0-9a-f]{64}")
_DEFINITION = "base.def"


def bootstrapped_base(base: Base, mirror: str, maker: Maker) -> Path:
    """The image of a base for the present state of its archive, made now if the store has none.

    If the archive cannot be asked, the image of the last known state is used. Raises as `pull_base` does, and
    WrongInput if a value is not allowed in a definition.
    """
    header = base_header(base, mirror)
    state = archive_state(base.reference, mirror)
    if state is None and (kept := kept_bootstrapped(base, mirror, maker.store)) is not None:
        maker.listener.note(f"the archive {mirror} does not answer; using the base that was made before")
        return kept
    key = state_key(header, state or "unknown")
    with turn(maker, key):
        found = maker.store.find(Kind.BASE, key) if state is not None else None
        if found is None:
            maker.listener.on_step(f"making the base {base.name} from {mirror}")
            about = {"reference": f"{base.name} ({base.reference})", "archive": mirror, "inrelease": f"sha256:{state}"}
            about["architecture"] = host_architecture()
            source = Source(
                f"{base.name} from {mirror}", lambda directory: _write(directory, header), about, done="made"
            )
            found = make(source, key, maker)
    if state is not None:
        _remember(maker.store, header, state)
    return found.path


def kept_bootstrapped(base: Base, mirror: str | None, store: Store) -> Path | None:
    """The image of a base that was made last, in the store; None if there is none. No server is asked."""
    if mirror is None:
        return None
    header = base_header(base, mirror)
    try:
        state = _note(store, header).read_text()
    except (OSError, ValueError):
        return None
    found = store.find(Kind.BASE, state_key(header, state)) if _STATE.fullmatch(state) else None
    return found.path if found is not None else None


def archive_state(suite: str, mirror: str) -> str | None:
    """The SHA-256 of a suite's InRelease, in hexadecimal digits; None if the archive does not answer."""
    try:
        content, _ = fetch(f"{mirror.rstrip('/')}/dists/{suite}/InRelease", {}, _TIMEOUT)
    except (OSError, HTTPException, ValueError):
        return None
    return hashlib.sha256(content).hexdigest()


def state_key(header: str, state: str) -> str:
    """The key of a base: its definition, the state of the archive, and the architecture of this host."""
    return hashlib.sha256(f"debootstrap\n{header}\n{state}\n{host_architecture()}".encode()).hexdigest()


def _write(directory: Path, header: str) -> str:
    path = directory / _DEFINITION
    path.write_text(header)
    return str(path)


def _note(store: Store, header: str) -> Path:
    name = hashlib.sha256(f"{header}\n{host_architecture()}".encode()).hexdigest()
    return store.own / _STATES / name


def _remember(store: Store, header: str, state: str) -> None:
    note = _note(store, header)
    make_directory(note.parent)
    write_atomically(note, state, durable=False)
