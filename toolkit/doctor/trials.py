"""Trials: whether a directory is writable, and whether the runtime builds and runs an image."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.doctor.layer_trial import PACKER, LayerTrial, try_layer
from toolkit.runtime.engine import BuildOptions
from toolkit.runtime.options import without_binds, without_options
from toolkit.support.errors import CtkError
from toolkit.support.files import nearest_existing
from toolkit.support.processes import run
from toolkit.support.programs import find_program
from toolkit.support.staging import remove_tree

if TYPE_CHECKING:
    from toolkit.runtime.engine import Runtime

_TIMEOUT = 30.0  # seconds for each of the two programs; both take a tenth of a second on an idle machine
_SYSTEM = ("bin", "lib", "lib64", "sbin", "usr")
_NO_BINDS = "user bind control disabled"  # a site's setting (apptainer.conf): the trial has no program to run then
_PREFIX = ".ctk-doctor-"


@dataclass(frozen=True, slots=True)
class Disk:
    """The trial of a directory, or of its nearest existing parent. `free` is in bytes; `problem` says why it is not
    writable, `noexec` whether programs cannot be executed there."""

    free: int
    problem: str | None = None
    noexec: bool = False


@dataclass(frozen=True, slots=True)
class Trial:
    """The trial of building a small image and running it. `lines` are what the runtime printed if that failed.

    `layers` is the trial of the same image with a layer; None if there was none.
    """

    built: bool
    ran: bool
    lines: tuple[str, ...] = ()
    layers: LayerTrial | None = None


def try_disk(directory: Path) -> Disk:
    """Write a file in `directory` and remove it; if it does not exist, in its nearest existing parent."""
    there = nearest_existing(directory)
    status = os.statvfs(there)
    problem = None
    try:
        with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=there) as name:
            Path(name, "file").write_bytes(b"x" * 4096)
    except OSError as error:
        problem = f"{there}: {error.strerror}"
    return Disk(status.f_bavail * status.f_frsize, problem, bool(status.f_flag & os.ST_NOEXEC))


def try_runtime(runtime: Runtime, directory: Path) -> Trial | None:
    """Build an image of empty directories, and run the host's own `true` in it, also with a layer over the image.

    None if that is not possible.

    `directory` is the work area, which need not exist; nothing is left there.
    """
    program = Path("/usr/bin/true")
    if not program.is_file():
        return None
    place = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=nearest_existing(directory)))
    try:
        binds = _make_root(place / "root")
        names = [f"{name}_{what}" for name in ("APPTAINER", "SINGULARITY") for what in ("CACHEDIR", "TMPDIR")]
        environment = {**without_options(), **dict.fromkeys([*names, "TMPDIR"], str(place))}
        image = place / "trial.sif"
        for argv in (
            runtime.build(image, str(place / "root"), BuildOptions()),
            runtime.exec(image, [str(program)], gpu=False, binds=binds),
        ):
            done = run(argv, env=environment, cwd=place, timeout=_TIMEOUT)
            if _NO_BINDS in done.stderr:
                return None
            if not done.ok:
                built = argv[1] != "build"
                return Trial(built, ran=False, lines=tuple((done.stdout + done.stderr).splitlines()))
        return Trial(built=True, ran=True, layers=_try_layer(runtime, image, program, binds, environment))
    except CtkError as error:
        return Trial((place / "trial.sif").is_file(), ran=False, lines=(error.message,))
    finally:
        remove_tree(place)


def _try_layer(
    runtime: Runtime, image: Path, program: Path, binds: list[str], environment: dict[str, str | None]
) -> LayerTrial | None:
    if find_program(PACKER) is None:
        return None
    try:
        return try_layer(runtime, image, program, binds, {**environment, **without_binds()})
    except (CtkError, OSError) as error:
        return LayerTrial(error.message if isinstance(error, CtkError) else str(error))


def _make_root(root: Path) -> list[str]:
    """Create an image's root of empty directories; return the binds of the host's programs and libraries."""
    root.mkdir()
    binds = []
    for name in (*_SYSTEM, "dev", "etc", "proc", "sys", "tmp", "var/tmp"):
        host = Path("/", name)
        if name in _SYSTEM and host.is_symlink():
            (root / name).symlink_to(host.readlink())
        elif name not in _SYSTEM or host.is_dir():
            (root / name).mkdir(parents=True)
            binds += [str(host)] if name in _SYSTEM else []
    return binds
