"""Requests and contexts for the tests of builds, in the directory that the fixture `here` makes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.inventory.making import fill, squash, system, write_sif
from toolkit.builds.asking import request_build
from toolkit.builds.bases import base_key
from toolkit.builds.context import BuildContext
from toolkit.builds.record import Record, record_beside
from toolkit.builds.target import parse_target
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.store.store import Kind
from toolkit.support.paths import WorkArea

if TYPE_CHECKING:
    from toolkit.builds.request import BuildRequest


RUNTIME = Runtime(Path("/usr/bin/apptainer"), "apptainer", (1, 4, 5))


def request(target: str, *, sandbox: bool = False, flat: bool = False, **more: object) -> BuildRequest:
    catalogue = Catalogue(Path("defs").absolute(), Path("shipped").absolute())
    return request_build(parse_target(target, flat=flat), catalogue, BuildOptions(sandbox), **more)  # type: ignore[arg-type]


def context(here: Path, *, preview: bool) -> BuildContext:
    area = WorkArea(here / "area", "the test")
    locks = Locks.of(Catalogue(here / "defs", here / "shipped"), area.path)
    return BuildContext(RUNTIME, area, locks, "http://m/debian", preview)


def small_sif(here: Path) -> Path:
    """A flat SIF with a file."""
    squashed = squash(fill(here / "small-root", {"etc/os-release": "ID=x\n", "data": "x" * 9999}), here / "small.sqfs")
    return write_sif(here / "small.sif", [system(squashed.read_bytes())])


def keep_base(here: Path, digest: str) -> Path:
    """A base with this digest in the store of `context`; its image is no image."""
    file = here / "kept.sif"
    file.write_bytes(b"the image" * 99)
    return context(here, preview=False).store.publish(Kind.BASE, base_key(digest), file, {"reference": "a/b:1"}).path


def sandbox_of(here: Path, target: str) -> Path:
    directory = here / "made"
    (directory / ".singularity.d").mkdir(parents=True)
    record_beside(directory).write_text(Record(target).as_text())
    return directory
