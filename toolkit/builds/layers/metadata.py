"""The metadata of a layered image: what `apptainer build` of the same definition would leave.

Source: Apptainer 1.4.5, internal/pkg/build/metadata.go and internal/pkg/build/assemblers/sif.go.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from toolkit.builds.layers.labels import merged_labels, with_script_labels
from toolkit.definitions.parts import parts_of
from toolkit.inventory.formats.images import open_image
from toolkit.inventory.formats.sif import DataType, FileSystem, Partition, PartitionType, read_sif
from toolkit.inventory.formats.sif_edit import NewObject, edit_sif, require_descriptors
from toolkit.inventory.formats.squashfs import Squashfs
from toolkit.recipes.model import Bootstrap
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolkit.builds.layers.layer import Layer
    from toolkit.definitions.parts import DefinitionParts
    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.inventory.formats.sif import Descriptor
    from toolkit.runtime.engine import Runtime

INSPECT_OBJECT = "inspect-metadata.json"
_OTHER_OBJECTS = 5  # definition, inspection, record, bill of materials, digests
_OCI_CONFIG = "oci-config.json"  # a build from a local SIF keeps it as well
_METADATA = "/.singularity.d"
_LABELS = f"{_METADATA}/labels.json"
_HISTORY = f"{_METADATA}/bootstrap_history"
SCRIPT_LABELS = "/.build.labels"
_NOT_INSPECTED = (f"{_HISTORY}/", SCRIPT_LABELS)
_APPS = "/scif/apps"
# What `inspect` reads, and the patterns of the environment scripts that it shows (cmd/internal/cli/inspect.go).
_INSPECTED = ("Singularity", "labels.json", "runscript", "runscript.help", "startscript", "test")
_ENVIRONMENT = re.compile(r"10-docker.*\.sh|9.*-environment\.sh", re.DOTALL)


def metadata_files(image: Rootfs) -> dict[str, bytes]:
    """The files of the metadata of an image, by path."""
    history = (f"{_HISTORY}/{name}" for name in image.names(_HISTORY))
    found = {path: image.read(path) for path in (*_inspected_files(image), *history, SCRIPT_LABELS)}
    return {path: content for path, content in found.items() if content is not None}


def labels_file(found: Mapping[str, bytes]) -> dict[str, bytes]:
    """The file of the labels, with those that a script wrote; nothing if it wrote none. `found` is as in
    `changed_files`, which expects them there.

    Raises CheckFailed if a script of the build left labels that are not JSON.
    """
    if SCRIPT_LABELS not in found:
        return {}
    labels = with_script_labels(_as_text(found.get(_LABELS, b"")), _as_text(found[SCRIPT_LABELS]))
    return {_LABELS: _as_bytes(labels)}


def changed_files(found: Mapping[str, bytes], image: Path, definition: str, runtime: Runtime) -> dict[str, bytes]:
    """The files of the metadata that the definition changes. `found` are those after the scripts; `image` is the base.

    Raises CheckFailed if a script of the build left labels that are not JSON.
    """
    return _changed_files(found, parts_of(definition), runtime, read_sif(image).architecture)


def inspect_object(image: Path, layers: Sequence[Layer], runtime: Runtime, scratch: Path) -> bytes:
    """The content of the SIF's `inspect-metadata.json`, for `layers` over the SIF `image`, the lowest first.

    The runtime's own `inspect` works in `scratch`.
    """
    with ExitStack() as stack:
        rootfs = stack.enter_context(open_image(image))
        trees = [Squashfs(layer.path) for layer in layers]
        for tree in trees:
            stack.callback(tree.close)
        found = metadata_files(rootfs.over(trees))
    return _inspected(
        {path: content for path, content in found.items() if not path.startswith(_NOT_INSPECTED)}, runtime, scratch
    )


def assemble(
    copy: Path, layers: Sequence[Layer], definition: str, metadata: bytes, more: Sequence[NewObject] = ()
) -> None:
    """Make the layered image of a copy of its base's SIF, in place.

    Partitions of the base stay, and `oci-config.json`; its definition, metadata, records and signatures go.
    `metadata` is what `inspect_object` returns. Raises WrongInput if the base has too few free descriptors.
    """
    partition = Partition(FileSystem.SQUASHFS, PartitionType.OVERLAY, read_sif(copy).architecture)
    new = [
        NewObject(DataType.DEFINITION, "", _as_bytes(parts_of(definition).text)),
        NewObject(DataType.GENERIC_JSON, INSPECT_OBJECT, metadata),
        *(NewObject(DataType.PARTITION, layer.name, layer.path, partition=partition) for layer in layers),
        *more,
    ]
    edit_sif(copy, drop=lambda found: not _stays(found), add=new)


def require_room(base: Path, layers: int) -> None:
    """Raise WrongInput (`too-many-layers`) if `base` has too few free descriptors for an image with so many layers."""
    partition = Partition(FileSystem.SQUASHFS, PartitionType.OVERLAY, "")
    new = [
        *(NewObject(DataType.GENERIC_JSON, "", b"") for _ in range(_OTHER_OBJECTS)),
        *(NewObject(DataType.PARTITION, "", b"", partition=partition) for _ in range(layers)),
    ]
    require_descriptors(base, drop=lambda found: not _stays(found), add=new)


def _stays(found: Descriptor) -> bool:
    return found.partition is not None or (found.data_type, found.name) == (DataType.GENERIC_JSON, _OCI_CONFIG)


def _changed_files(
    before: Mapping[str, bytes], parts: DefinitionParts, runtime: Runtime, architecture: str
) -> dict[str, bytes]:
    """The files of the metadata that the definition changes."""
    labels = _as_text(before.get(_LABELS, b""))
    files = {
        f"{_METADATA}/Singularity": _as_bytes(parts.text),
        _LABELS: _as_bytes(merged_labels(labels, parts, (runtime.product, full_version(runtime)), architecture)),
    }
    # What a registry holds has no definition of its own: that of the pulled base is not history.
    earlier = before.get(f"{_METADATA}/Singularity")
    if earlier is not None and parts.header.get("bootstrap") == Bootstrap.LOCALIMAGE:
        number = sum(path.startswith(f"{_HISTORY}/") for path in before)
        files[f"{_HISTORY}/Apptainer{number}"] = earlier
    if parts.environment:
        path = f"{_METADATA}/env/90-environment.sh"
        found = before.get(path)
        files[path] = (b"#!/bin/sh\n" if found is None else found) + b"\n" + _as_bytes(parts.environment) + b"\n"
    return files


def _inspected(files: Mapping[str, bytes], runtime: Runtime, scratch: Path) -> bytes:
    """`inspect-metadata.json`: the runtime's own inspection of a directory with the metadata alone."""
    with TemporaryDirectory(dir=scratch) as name:
        directory = Path(name)
        for path, content in files.items():
            copy = directory / path.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
        done = run([str(runtime.program), "inspect", "--all", name]).require("inspecting the metadata of the image")
    return json.dumps(json.loads(done.stdout), ensure_ascii=False, separators=(",", ":")).encode()


def _inspected_files(image: Rootfs) -> Iterator[str]:
    apps = (f"{_APPS}/{name}/scif" for name in image.names(_APPS) if image.is_directory(f"{_APPS}/{name}/scif"))
    for directory in (_METADATA, *apps):
        yield from (f"{directory}/{name}" for name in _INSPECTED)
        yield from (
            f"{directory}/env/{name}" for name in image.names(f"{directory}/env") if _ENVIRONMENT.fullmatch(name)
        )


def full_version(runtime: Runtime) -> str:
    """The runtime's version as it writes it itself, with a packager's suffix."""
    return run([str(runtime.program), "version"]).require("asking the runtime for its version").stdout.strip()


def _as_text(content: bytes) -> str:
    return content.decode(errors="replace")


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
