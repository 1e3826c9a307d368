"""A layer from a script: run over the read-only image in a container, normalised, packed."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from base64 import b64decode, b64encode
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.layers.inside import Place, Request, asking
from toolkit.builds.layers.layer import Layer
from toolkit.builds.layers.pack import pack
from toolkit.definitions.places import SCRIPT
from toolkit.inventory.formats.images import mounted_partitions
from toolkit.inventory.formats.layers import layers_of
from toolkit.inventory.formats.sif import read_sif
from toolkit.runtime.layer_check import checked
from toolkit.runtime.options import step_environment
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.namespace import as_owner
from toolkit.support.overlay import MOUNTERS, NO_MOUNTER, Overlay, Tree
from toolkit.support.ownership import make_plain
from toolkit.support.processes import stream
from toolkit.support.programs import find_program
from toolkit.support.staging import remove_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.builds.layers.inside import Answer
    from toolkit.definitions.steps import Input
    from toolkit.runtime.engine import Runtime


def _nothing(_part: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Below:
    """What a layer lies over: a SIF, which may be layered itself, and the layers made in this build, lowest first."""

    image: Path
    layers: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerRoom:
    """Where and with what layers are made.

    `directory` is for large temporary files, and holds the layers; `environment` are variables of the runtime's
    process, `take` gets each line that it prints. `network`: whether scripts can use that of the host. `on_part` and
    `on_progress` are those of a `Listener`.
    """

    directory: Path
    runtime: Runtime
    binds: tuple[str, ...]
    environment: Mapping[str, str]
    take: Callable[[str], None]
    compression: str = "zstd"
    cores: int | None = None
    memory: int | None = None
    network: bool = True
    on_part: Callable[[str], None] = _nothing
    on_progress: Callable[[int, int], None] | None = None


class StepFailed(ProgramFailed):
    """The script of a step, or the copying of its inputs, ended with `status`. What it printed went to `take`."""

    def __init__(self, status: int) -> None:
        super().__init__(f"a step of the build failed (status {status})", code="build-failed")
        self.status = status


class NotLayered(MissingOnHost):
    """What the script did cannot be a layer that looks like the flat image: the image must be built flat."""

    code = "not-layered"


def make_layer(
    script: str,
    below: Below,
    room: LayerRoom,
    *,
    inputs: Sequence[Input] = (),
    finish: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] | None = None,
) -> Layer | None:
    """Copy `inputs`, run `script` with `sh -ex` over `below`, and pack what changed.

    `finish` gets the files of the metadata after the script, and returns those to write.

    None if nothing changed. Raises StepFailed if the script fails, NotLayered if only a flat image can be right,
    MissingOnHost or ProgramFailed if packing fails.
    """
    with tempfile.TemporaryDirectory(dir=room.directory, prefix="step-", ignore_cleanup_errors=True) as name:
        work = Path(name)
        make_plain(work)
        try:
            overlay = work / "overlay"
            _make_directories(overlay / "upper", overlay / "work")
            layers = tuple(str(layer.path) for layer in below.layers)
            with asking(Place(str(overlay), str(below.image), str(room.directory), layers), room.take) as ask:
                copied = tuple((str(item.source.absolute()), item.path) for item in inputs)
                bindable = _accepted(ask(Request("prepare", copied, script))).bindable
                if script:
                    _run(work, overlay, below, room, bindable)
                files: dict[str, str] = {}
                if finish is not None:
                    found = _accepted(ask(Request("read"))).files
                    written = finish({path: b64decode(content) for path, content in found.items()})
                    files = {path: b64encode(content).decode() for path, content in written.items()}
                layer_name = _accepted(ask(Request("finish", files=files))).name
            if layer_name is None:
                return None
            path = room.directory / f"{layer_name}.sqfs"
            room.on_part("packing")
            pack(overlay / "upper", path, room.compression, room.cores, room.memory, room.on_progress)
            return Layer(path, layer_name, path.stat().st_size)
        finally:
            remove_tree(work / "overlay")


def _make_directories(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True)
        path.chmod(0o755)


def _accepted(answer: Answer) -> Answer:
    if answer.status != 0:
        raise StepFailed(answer.status)
    if answer.refused is not None:
        raise NotLayered(f"the image cannot be layered: {answer.refused}", fix="Build it with --flat.")
    return answer


def run_read_only(script: str, below: Below, room: LayerRoom) -> None:
    """Run `script` with `sh -ex` where nothing can be changed, as in a job. Raises StepFailed."""
    with tempfile.TemporaryDirectory(dir=room.directory, prefix="step-", ignore_cleanup_errors=True) as name:
        text = Path(name) / "script"
        text.write_text(script, encoding="utf-8", errors="surrogateescape")
        lowers = [layer.path for layer in below.layers]
        # It starts only if all layers below are mounted: on the bare base it would see another image.
        names = (*layers_of(below.image).names, *(layer.name for layer in below.layers))
        words = checked(["/bin/sh", "-exs"], str(below.image), names)
        argv = room.runtime.read_only_step(below.image, words, lowers=lowers, binds=room.binds)
        status = stream(argv, room.take, env={**room.environment, **step_environment()}, cwd=Path(name), input=text)
    if status != 0:
        raise StepFailed(status)


def _run(work: Path, directory: Path, below: Below, room: LayerRoom, host_files: Sequence[str]) -> None:
    """Run the script that was prepared in the image, with copies of `host_files` that it may change."""
    mounter = find_program(*MOUNTERS)
    if mounter is None:
        raise NotLayered(NO_MOUNTER, fix="Install squashfuse, or build with --flat.")
    overlay = Overlay(directory, _trees(below), mounter, network=room.network)
    binds = (*_writable_copies(work, host_files), *room.binds)
    argv = room.runtime.step(overlay.merged, ["/bin/sh", "-ex", SCRIPT], binds=binds)
    lines: deque[str] = deque(maxlen=1)

    def take(line: str) -> None:
        lines.append(line)
        room.take(line)

    environment = {**room.environment, **step_environment()}
    status = stream(as_owner(overlay.command(argv)), take, env=environment, cwd=work)
    if status != 0 and not overlay.was_mounted:
        reason = lines[-1] if lines else f"status {status}"
        raise NotLayered(f"the layers cannot be mounted for a step: {reason}", fix="Build it with --flat.")
    if status != 0:
        raise StepFailed(status)


def _trees(below: Below) -> tuple[Tree, ...]:
    """All that a step lies over, the lowest first."""
    sif = read_sif(below.image)
    partitions = [Tree(below.image, found.offset) for found in mounted_partitions(sif)]
    return (*partitions, *(Tree(layer.path) for layer in below.layers))


def _writable_copies(work: Path, paths: Sequence[str]) -> list[str]:
    binds = []
    for path in map(Path, paths):
        with contextlib.suppress(OSError):
            copy = work / path.name
            shutil.copyfile(path, copy)
            copy.chmod(0o664)
            binds.append(f"{copy}:{path}")
    return binds
