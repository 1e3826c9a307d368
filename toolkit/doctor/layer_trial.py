"""The trial of a layer: a small image with an overlay partition is run, and the layer's file is looked for inside."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.inventory.formats.images import mounted_partitions
from toolkit.inventory.formats.sif import DataType, FileSystem, Partition, PartitionType, read_sif
from toolkit.inventory.formats.sif_edit import NewObject, copy_base, edit_sif
from toolkit.runtime.known_errors import FULL_DISK, explain
from toolkit.runtime.layer_check import STATUS, checked, not_mounted
from toolkit.support.files import write_atomically
from toolkit.support.namespace import as_owner
from toolkit.support.overlay import MOUNTERS, NO_MOUNTER, Overlay, Tree
from toolkit.support.processes import run
from toolkit.support.programs import find_program

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.runtime.engine import Runtime
    from toolkit.support.processes import Completed

PACKER = "mksquashfs"
_KEPT = "layer-trials"  # in the work area
SUBORDINATE_IDS = Path("/etc/subuid")
_NAME = f"ctk-layer-{0:032x}"
_TIMEOUT = 30.0  # seconds for each program, which takes some tenths: a flat image of a busy host costs minutes
_ROUNDS = 2
_MOUNTERS = ("fuse-overlayfs", *MOUNTERS)  # with which an ordinary user's runtime mounts layers
_RETRIED = 24 * 3600.0  # seconds after which a layer that could not be mounted is tried again
_IGNORED = "the runtime ignores the layers of an image (`enable overlay` in its configuration?)"


@dataclass(frozen=True, slots=True)
class LayerTrial:
    """Whether a layer works here: `problem` says why not. `seconds` is what one layer adds to a container's start.

    `lasting`: the problem is that the runtime or the host does not mount layers. Any other, such as a full disk, may be
    over at the next trial.
    """

    problem: str | None = None
    seconds: float | None = None
    lasting: bool = False


def try_layer(
    runtime: Runtime, flat: Path, program: Path, binds: Sequence[str], environment: Mapping[str, str | None]
) -> LayerTrial:
    """Add a layer to a copy of the image `flat`, and run `program` in it, as a job does and as a step of a build does.

    Everything is written beside `flat`. `binds` bring the program and a shell from the host. Raises CtkError if a
    program is missing or hangs.
    """
    place = flat.parent
    layered = _add_layer(flat, place)
    command = checked([str(program)], flat.name, [_NAME])
    done = run(runtime.exec(layered, command, gpu=False, binds=binds), env=environment, cwd=place, timeout=_TIMEOUT)
    if not done.ok:
        return _failed(done)
    if (failed := _try_step(runtime, layered, command, binds, environment)) is not None:
        return failed
    times: dict[Path, list[float]] = {flat: [], layered: []}
    for _ in range(_ROUNDS):
        for image, taken in times.items():
            argv = runtime.exec(image, [str(program)], gpu=False, binds=binds)
            started = time.monotonic()
            run(argv, env=environment, cwd=place, timeout=_TIMEOUT)
            taken.append(time.monotonic() - started)
    return LayerTrial(seconds=max(0.0, min(times[layered]) - min(times[flat])))


def _try_step(
    runtime: Runtime, image: Path, command: Sequence[str], binds: Sequence[str], environment: Mapping[str, str | None]
) -> LayerTrial | None:
    """Run `command` over `image` as a build runs a step; None if that works."""
    mounter = find_program(*MOUNTERS)
    if mounter is None:
        return LayerTrial(NO_MOUNTER, lasting=True)
    place = image.parent / "step"
    for name in ("upper", "work"):
        (place / name).mkdir(parents=True)
    trees = tuple(Tree(image, found.offset) for found in mounted_partitions(read_sif(image)))
    overlay = Overlay(place, trees, mounter)
    argv = as_owner(overlay.command(runtime.step(overlay.merged, command, binds=binds)))
    done = run(argv, env=environment, cwd=image.parent, timeout=_TIMEOUT)
    if done.ok:
        return None
    if overlay.was_mounted:
        return _failed(done)
    return LayerTrial(f"a build cannot mount layers here: {_last_line(done)}", lasting=True)


def _add_layer(flat: Path, place: Path) -> Path:
    content, packed, layered = place / "layer", place / "layer.sqfs", place / "layered.sif"
    (content / ".singularity.d").mkdir(parents=True)
    (content / ".singularity.d" / _NAME).touch()
    pack = run([PACKER, str(content), str(packed), "-all-root", "-noappend", "-no-progress"], timeout=_TIMEOUT)
    pack.require("packing a small layer")
    copy_base(flat, layered)
    partition = Partition(FileSystem.SQUASHFS, PartitionType.OVERLAY, read_sif(flat).architecture)
    edit_sif(layered, drop=lambda _: False, add=[NewObject(DataType.PARTITION, _NAME, packed, partition=partition)])
    return layered


def _last_line(done: Completed) -> str:
    lines = _lines(done)
    return lines[-1] if lines else f"status {done.returncode}"


def _lines(done: Completed) -> list[str]:
    return [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]


def _failed(done: Completed) -> LayerTrial:
    lines = _lines(done)
    if done.returncode == STATUS and not_mounted(lines) is not None:
        return LayerTrial(_IGNORED, lasting=True)
    known = explain(lines)
    if known is not None:
        return LayerTrial(known.meaning, lasting=known is not FULL_DISK)
    return LayerTrial(f"the runtime reports: {_last_line(done)}")


def kept_file(area: Path) -> Path:
    """Where the work area keeps the result of this host: hosts that share an area do not undo each other's."""
    return area / _KEPT / f"{hashlib.sha256(platform.node().encode()).hexdigest()[:16]}.json"


def kept_trial(area: Path, runtime: Runtime) -> LayerTrial | None:
    """The result kept in the work area of a trial by the same runtime, kernel, user and host; None if there is none.

    A failure is relied on for a day.
    """
    try:
        kept = json.loads(kept_file(area).read_text(encoding="utf-8"))
        if kept["of"] != _conditions(runtime):
            return None
        trial = LayerTrial(kept["problem"], kept["seconds"], lasting=kept["problem"] is not None)
        stale = trial.problem is not None and not 0 <= time.time() - kept["tried"] <= _RETRIED
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return None if stale else trial


def keep_trial(area: Path, runtime: Runtime, trial: LayerTrial) -> None:
    """Remember `trial` in the work area, for `kept_trial`; not a problem that may be over soon."""
    if trial.problem is not None and not trial.lasting:
        return
    found = {"problem": trial.problem, "seconds": trial.seconds}
    document = {"of": _conditions(runtime), "tried": time.time(), **found}
    file = kept_file(area)
    with contextlib.suppress(OSError):  # what is written into it says what is wrong
        file.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(file, json.dumps(document, indent=2) + "\n", durable=False)


def _conditions(runtime: Runtime) -> list[str]:
    """What a trial holds for: other programs, another configuration, kernel, host or user may answer otherwise."""
    program = runtime.program.resolve()
    name, prefix = program.name, program.parent.parent
    own = [prefix / where / name / "bin" / tool for where in ("libexec", "lib") for tool in _MOUNTERS]
    found = [Path(path) for tool in (PACKER, *_MOUNTERS) if (path := find_program(tool)) is not None]
    configured = [place / name / f"{name}.conf" for place in (Path("/etc"), prefix / "etc")]
    return [
        runtime.version_text,
        *(
            f"{file} {file.stat().st_mtime_ns}"
            for file in (program, *configured, *own, *found, SUBORDINATE_IDS)
            if file.is_file()
        ),
        *(platform.release(), platform.node(), str(os.geteuid())),
    ]
