"""What is done to a layer's upper directory as root of the user's namespace: in a process of its own.

A base or a script of the build decides what is in that directory, so this process makes it (with `work` beside it) its
root directory before it touches it: no symlink in it leads to the host. From then on it loads no code.

A request and an answer are JSON files: names that are not UTF-8 are kept. Only this module knows them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import sys
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, field
from importlib.machinery import BuiltinImporter, FrozenImporter
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import CtkError
from toolkit.support.namespace import as_owner
from toolkit.support.processes import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.builds.layers.below import Lower

# -I: nothing of the working directory or the user is imported. The first argument is where ctk lies.
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolkit.builds.layers.inside import main; main()"
_UPPER, _INPUTS = "upper", "inputs"
# All that is needed after the root directory changed; packages that may be missing are.
_LOADED = (
    *(f"toolkit.builds.layers.{name}" for name in ("copies", "copying", "digest", "finishing", "metadata", "upper")),
    *(f"toolkit.inventory.formats.{name}" for name in ("compression", "images", "status", "xattrs")),
)
_OPTIONAL = ("zstandard", "lz4.block", "compression.zstd")


@dataclass(frozen=True, slots=True)
class Request:
    """The action is `prepare`, `read` or `finish`; `layers` lie over `image`, the lowest first.

    `overlay` is the directory with `upper`, the upper directory of a step. `kept` is the directory where what was found
    in a tree is kept for the next layer. `files` are written into the tree: contents in base64 by path.
    """

    action: str
    overlay: str
    image: str
    kept: str
    layers: tuple[str, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    script: str = ""
    copies: Mapping[str, Sequence[int]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`copies` are what was prepared, `bindable` paths for binds of files; `files` are what was read; `name` is that of
    the layer, None if it is empty; `refused` says why there can be no layer."""

    name: str | None = None
    refused: str | None = None
    copies: Mapping[str, Sequence[int]] = field(default_factory=dict)
    bindable: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def ask(request: Request, directory: Path, take: Callable[[str], None]) -> tuple[int, Answer]:
    """Do what is asked; return the exit status and the answer. Files for it are put into `directory`."""
    question, answer = directory / "request.json", directory / "answer.json"
    question.write_text(json.dumps(asdict(request)), encoding="utf-8")
    root = str(Path(__file__).resolve().parents[3])
    status = stream(as_owner([sys.executable, "-I", "-c", _START, root, str(question), str(answer)]), take)
    if status != 0:
        return status, Answer()
    return 0, Answer(**json.loads(answer.read_text(encoding="utf-8")))


def main() -> None:
    """Answer the request in the file that the first argument names into the second. A full disk is told in one line."""
    from toolkit.builds.layers.upper import DISK_FULL

    try:
        status = _answer()
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        sys.exit(os.strerror(error.errno))
    sys.exit(status)


def _answer() -> int:
    from toolkit.builds.layers.below import Lower
    from toolkit.builds.layers.normalise import CannotNormalise
    from toolkit.builds.layers.upper import DISK_FULL

    os.umask(0o002)  # that of `%files`
    request = Request(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    status = 0
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        try:
            lower = Lower.open(Path(request.image), [Path(layer) for layer in request.layers])
            status, answer = {"prepare": _prepared, "read": _read, "finish": _finished}[request.action](request, lower)
        except (CannotNormalise, CtkError) as error:
            answer = Answer(refused=str(error))
        except RecursionError:
            answer = Answer(refused="its directories are nested too deeply")
        except OSError as error:
            if error.errno in DISK_FULL:
                raise
            answer = Answer(refused=f"its tree cannot be changed: {error}")
        json.dump(asdict(answer), file)
    return status


def _confine(overlay: str) -> str:
    """Make `overlay` the root directory; return the upper directory in it. All code is loaded before."""
    for name in _LOADED:
        importlib.import_module(name)
    for name in _OPTIONAL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    hashlib.sha256(b"").digest()  # OpenSSL reads its configuration now
    os.chroot(overlay)
    os.chdir("/")
    sys.path.clear()
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
    return f"/{_UPPER}"


def _prepared(request: Request, lower: Lower) -> tuple[int, Answer]:
    """The root directory as it is below, copies of what an overlay cannot copy, the inputs, and the script."""
    from toolkit.builds.layers.copies import copy_up, find_specials, take_status
    from toolkit.builds.layers.copying import place_inputs, stage_inputs
    from toolkit.builds.layers.finishing import place_host_files, refuse_reserved, write_script

    refuse_reserved(lower, [path for _, path in request.inputs])
    specials = find_specials(lower, Path(request.kept))
    status = stage_inputs(os.path.join(request.overlay, _INPUTS), request.inputs)
    if status != 0:
        return status, Answer()
    upper = _confine(request.overlay)
    take_status(lower, lower.root, upper)
    copies = copy_up(upper, lower, specials)
    place_inputs(upper, lower, request.inputs, f"/{_INPUTS}")
    shutil.rmtree(f"/{_INPUTS}")
    if request.script:
        write_script(upper, request.script)
    return 0, Answer(copies=copies, bindable=place_host_files(upper, lower))


def _read(request: Request, lower: Lower) -> tuple[int, Answer]:
    """The files of the metadata, as the step sees them."""
    from toolkit.builds.layers.metadata import metadata_files
    from toolkit.inventory.formats.images import open_step

    upper = _confine(request.overlay)
    found = metadata_files(open_step(Path(upper), lower.trees))
    return 0, Answer(files={path: b64encode(content).decode() for path, content in found.items()})


def _finished(request: Request, lower: Lower) -> tuple[int, Answer]:
    """The normal tree, with the mark of a layer."""
    from toolkit.builds.layers.copies import Copy
    from toolkit.builds.layers.finishing import finish_tree

    upper = _confine(request.overlay)
    files = {path: b64decode(content) for path, content in request.files.items()}
    copies = {path: Copy(*state) for path, state in request.copies.items()}
    return 0, Answer(name=finish_tree(upper, lower, copies, files))
