"""The digests of a SIF's data objects, kept in the SIF itself: whether the file is still what was built.

The table names every object but itself. What others add later (`apptainer sif add`, `apptainer sign`) is not in it and
damages nothing; neither do the UUID, the times and the numbers in the header, which they change. The table goes where
the image goes. What is remembered of a file on this host only saves reading all of it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any

from toolkit.inventory.formats.kinds import PathKind, kind_of
from toolkit.inventory.formats.layers import is_layer_name, layer_names
from toolkit.inventory.formats.sif import HEADER, DataType, read_sif
from toolkit.inventory.formats.sif_edit import NewObject
from toolkit.store.trusted import open_directory, open_file
from toolkit.support.content import part_digest
from toolkit.support.durable import sync, write_out
from toolkit.support.errors import WrongInput
from toolkit.support.files import make_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from toolkit.inventory.formats.sif import Descriptor, Sif

    Progress = Callable[[int, int], None]

OBJECT_NAME = "ctk-digests.json"
_RECORD = "ctk.json"
_SCHEMA = "ctk.digests/1"
_KEYS = {"id", "type", "group", "link", "name", "size_bytes", "partition", "created", "digest"}
_BLOCK = 4 << 20
# A write in the same tick of the clock leaves ctime as it is. A kernel's tick is 10 ms at most; a time without
# microseconds is that of a file system with a clock of its own, of 2 s at most.
_TICK_NS, _COARSE_TICK_NS, _MICROSECOND_NS = 20_000_000, 2_000_000_000, 1_000_000


def _silent(_done: int, _size: int) -> None:
    pass


def digests_object(image: Path, known: Mapping[str, str]) -> NewObject:
    """The table of the SIF `image`. `known` are digests of partitions that need not be read (`partition_digests`)."""
    sif = read_sif(image)
    with image.open("rb") as file:
        header = _header(file.read(HEADER.size))
        objects = [
            {**_description(found), "digest": known.get(partition_key(found)) or digest_of_part(file.fileno(), found)}
            for found in sif.descriptors
        ]
    text = json.dumps({"schema": _SCHEMA, "header": header, "objects": objects}, indent=1) + "\n"
    return NewObject(DataType.GENERIC_JSON, OBJECT_NAME, text.encode())


def partition_key(found: Descriptor) -> str:
    """What tells a partition from others, in its image and in one that is made of it: where it begins."""
    if found.partition is None:
        return ""
    return found.name if is_layer_name(found.name) else str(found.offset)


def partition_digests(image: Path, cache: Path, progress: Callable[[int], None]) -> dict[str, str]:
    """The digests of the partitions of a SIF by `partition_key`, remembered in `cache`. Raises as `content_digest`."""
    with image.open("rb") as file:
        write_out(file.fileno())  # before the digests are: a power failure must not leave them alone

        def digest(found: Descriptor) -> str:
            return part_digest(
                image, cache, f"{found.offset}+{found.size}", lambda: digest_of_part(file.fileno(), found, progress)
            )

        return {partition_key(found): digest(found) for found in read_sif(image).of_type(DataType.PARTITION)}


def find_damage(image: Path, cache: Path | None, progress: Progress = _silent) -> str | None:
    """What of an image that ctk built is not as it was built; None if nothing is, or the image has no table.

    In `cache`, a directory of this user, is remembered which files were read; None: nowhere. `progress` gets the bytes
    that were read and all of them. Raises WrongInput if the file is no image, or is truncated.
    """
    if kind_of(image) is not PathKind.SIF:
        return None
    sif = read_sif(image)
    if _lost_descriptors(sif):
        return "its table of data objects has lost entries"
    found = next((found for found in reversed(sif.descriptors) if found.name == OBJECT_NAME), None)
    if found is None:
        return None
    text = sif.read(found)
    table = _parsed(text)
    if table is None:
        return f"its object {OBJECT_NAME} cannot be read"
    if table.get("schema") != _SCHEMA:
        return None
    status = image.stat()
    name = _name(status, text)
    if cache is not None and _is_remembered(cache, name):
        return None
    reason = _compare(sif, table, progress)
    if reason is None and cache is not None and _name(image.stat(), text) == name:
        _remember(cache, name, image, status)
    return reason


def require_undamaged(image: Path, cache: Path | None, fix: str, progress: Progress = _silent) -> None:
    """Raise WrongInput (`corrupt-image`) with this fix if `find_damage` finds something, or an image is truncated."""
    try:
        reason = find_damage(image, cache, progress)
    except WrongInput as error:
        if error.code == "corrupt-image":
            error.fix = fix
        raise
    if reason is not None:
        raise WrongInput(f"{image} is damaged: {reason}", fix=fix, code="corrupt-image")


def remember_built(image: Path, cache: Path) -> None:
    """Remember that the image, which was just built, is whole. It waits for the next tick of a fine clock."""
    with contextlib.suppress(OSError, WrongInput):
        sif, status = read_sif(image), image.stat()
        text = next((sif.read(found) for found in reversed(sif.descriptors) if found.name == OBJECT_NAME), None)
        if text is not None:
            if status.st_ctime_ns % _MICROSECOND_NS:
                time.sleep(_TICK_NS / 1e9)
            _remember(cache, _name(status, text), image, status)


def digest_of_part(file: int, found: Descriptor, progress: Callable[[int], None] = lambda _read: None) -> str:
    """The `sha256:…` of a data object in an open file; `progress` gets the bytes of each block. Raises OSError."""
    digest, at, end = hashlib.sha256(), found.offset, found.offset + found.size
    while at < end and (block := os.pread(file, min(_BLOCK, end - at), at)):
        digest.update(block)
        at += len(block)
        progress(len(block))
    return f"sha256:{digest.hexdigest()}"


def _header(raw: bytes) -> str:
    """A hash of what nobody changes in place: launch script, magic, version, architecture, and where the tables are."""
    fields = HEADER.unpack(raw)
    return f"sha256:{hashlib.sha256(repr((*fields[:4], *fields[8:12])).encode()).hexdigest()}"


def _description(found: Descriptor) -> dict[str, Any]:
    """What the SIF says about an object, but for its place."""
    what = found.partition
    partition = [int(what.file_system), int(what.type), what.architecture] if what is not None else None
    return {
        "id": found.id,
        "type": int(found.data_type),
        "group": found.group,
        "link": found.link,
        "name": found.name,
        "size_bytes": found.size,
        "partition": partition,
        "created": found.created,
    }


def _lost_descriptors(sif: Sif) -> bool:
    """Whether the header counts more objects than there are: who removes one corrects the header, too.

    Of an image that ctk did not build, only the loss of all objects is certain.
    """
    with sif.path.open("rb") as file:
        free, total = HEADER.unpack(file.read(HEADER.size))[7:9]
    is_own = any(found.name in (_RECORD, OBJECT_NAME) or is_layer_name(found.name) for found in sif.descriptors)
    return bool(total - free > len(sif.descriptors)) and (is_own or not sif.descriptors)


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        table = json.loads(text)
        objects = table["objects"] if table.get("schema") == _SCHEMA else []
        valid = all(
            entry.keys() == _KEYS and isinstance(entry["id"], int) and isinstance(entry["created"], int)
            for entry in objects
        )
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None
    return table if valid else None


def _compare(sif: Sif, table: Mapping[str, Any], progress: Progress) -> str | None:
    """What differs from the table."""
    now = {found.id: found for found in sif.descriptors}
    wanted: list[tuple[Descriptor, str]] = []
    for entry in table["objects"]:
        found = now.get(entry["id"])
        if found is not None and _description(found) == {key: entry[key] for key in entry if key != "digest"}:
            wanted.append((found, entry["digest"]))
        elif _is_needed(entry) or (found is not None and found.created <= entry["created"]):
            return f"data object {entry['id']} ({entry['name'] or 'without a name'}) is not there as it was built"
    done, size = 0, sum(found.size for found, _ in wanted)

    def count(read: int) -> None:
        nonlocal done
        done += read
        progress(done, size)

    with sif.path.open("rb") as file:
        if _header(file.read(HEADER.size)) != table.get("header"):
            return "its header is not as it was built"
        for found, digest in wanted:
            if digest_of_part(file.fileno(), found, count) != digest:
                return f"{_title(sif, found)} does not have the content that was built"
    return None


def _is_needed(entry: Mapping[str, Any]) -> bool:
    """Whether an object is never removed or replaced by hand."""
    return bool(entry["type"] == DataType.PARTITION or entry["name"] == _RECORD)


def _title(sif: Sif, found: Descriptor) -> str:
    if is_layer_name(found.name):
        names = layer_names(sif)
        return f"its layer {found.name} ({names.index(found.name) + 1} of {len(names)})"
    if found.partition is not None:
        return "the file system of its base" if layer_names(sif) else "its file system"
    kind = found.data_type.name.lower() if isinstance(found.data_type, DataType) else found.data_type
    return f"its object {found.name or f'{found.id} ({kind})'}"


def _name(status: os.stat_result, table: bytes) -> str:
    """The name of a note on a file: another file, or a changed one, has another. Not the device: on a shared file
    system each host has its own number for it."""
    stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return hashlib.sha256(repr(stamp).encode() + table).hexdigest()


def _is_remembered(cache: Path, name: str) -> bool:
    try:
        directory = open_directory(cache / "images", ())
        try:
            os.close(open_file(directory, name))
        finally:
            os.close(directory)
    except OSError:
        return False
    return True


def _remember(cache: Path, name: str, image: Path, status: os.stat_result) -> None:
    tick = _TICK_NS if status.st_ctime_ns % _MICROSECOND_NS else _COARSE_TICK_NS
    if time.time_ns() - status.st_ctime_ns < tick:
        return
    with contextlib.suppress(OSError):  # it only saves work
        sync(image.resolve())  # a copy that was made just now: a power failure must not leave the note alone
        make_directory(cache / "images", above=0o700)  # the work area, if it is new
        (cache / "images" / name).touch(mode=0o600)
