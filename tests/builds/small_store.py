"""A store with small package files, and locks that name them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from tests.pins.locks import SMALL
from toolkit.pins.lock.model import Lock, LockedPackage
from toolkit.store.store import Kind, Store


def package(name: str, content: bytes, file: str | None = None) -> LockedPackage:
    return LockedPackage(name, "1", file or f"{name}-1-py3-none-any.whl", hashlib.sha256(content).hexdigest())


def lock_of(*packages: LockedPackage) -> Lock:
    return replace(SMALL, packages=packages, builds=())


def keep(store: Store, content: bytes, name: str) -> None:
    with store.staging() as directory:
        (directory / name).write_bytes(content)
        store.publish(Kind.PACKAGE, hashlib.sha256(content).hexdigest(), directory / name, {"file": name})
