"""What is done to a layer's upper directory as root of the user's namespace: in a process of its own.

A base or a script of the build decides what is in that directory, so this process makes it (with `work` beside it) its
root directory before it touches it: no symlink in it leads to the host. From then on it loads no code. It waits while
the script runs.

Requests and answers are lines of JSON: names that are not UTF-8 are kept. Only this module knows them.
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
from toolkit.support.processes import ANSWER, conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from toolkit.builds.layers.below import Lower
    from toolkit.builds.layers.copies import Copy

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
class Place:
    """Where the process works: `layers` lie over `image`, the lowest first.

    `overlay` is the directory with `upper`, the upper directory of a step. `kept` is the directory where what was found
    in a tree is kept for the next layer.
    """

    overlay: str
    image: str
    kept: str
    layers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """The action is `prepare`, which comes first, `read` or `finish`.

    `inputs` and `script` are prepared. `files` are written into the tree: contents in base64 by path.
    """

    action: str
    inputs: tuple[tuple[str, str], ...] = ()
    script: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`bindable` are paths for binds of files; `files` are what was read; `name` is that of the layer, None if it is
    empty; `refused` says why there can be no layer; `status` is that of a program that failed."""

    name: str | None = None
    refused: str | None = None
    bindable: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    status: int = 0


@contextlib.contextmanager
def asking(place: Place, take: Callable[[str], None]) -> Iterator[Callable[[Request], Answer]]:
    """Start the process. Yields what hands it a request and returns the answer; `take` gets the lines that it prints.

    A full disk is a line, and an answer with a status.
    """
    root = str(Path(__file__).resolve().parents[3])
    command = as_owner([sys.executable, "-I", "-c", _START, root, json.dumps(asdict(place))])
    with conversation(command, take) as send:

        def ask(request: Request) -> Answer:
            answer = send(json.dumps(asdict(request)))
            return Answer(status=answer) if isinstance(answer, int) else Answer(**json.loads(answer))

        yield ask


def main() -> None:
    """Answer the requests of the standard input, for the place in the first argument."""
    from toolkit.builds.layers.normalise import CannotNormalise
    from toolkit.builds.layers.upper import DISK_FULL

    os.umask(0o002)  # that of `%files`
    step = None
    for line in sys.stdin:
        request = Request(**json.loads(line))
        try:
            step = step or _Step.open(Place(**json.loads(sys.argv[1])))
            answer = {"prepare": step.prepare, "read": step.read, "finish": step.finish}[request.action](request)
        except (CannotNormalise, CtkError) as error:
            answer = Answer(refused=str(error))
        except RecursionError:
            answer = Answer(refused="its directories are nested too deeply")
        except OSError as error:
            if error.errno in DISK_FULL:
                sys.exit(os.strerror(error.errno))
            answer = Answer(refused=f"its tree cannot be changed: {error}")
        print(ANSWER, json.dumps(asdict(answer)), sep="", flush=True)


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


@dataclass(slots=True)
class _Step:
    """The trees below, open; `upper` is the upper directory once this process is confined, `copies` are those in it."""

    place: Place
    lower: Lower
    upper: str = ""
    copies: Mapping[str, Copy] = field(default_factory=dict)

    @classmethod
    def open(cls, place: Place) -> _Step:
        from toolkit.builds.layers.below import Lower

        return cls(place, Lower.open(Path(place.image), [Path(layer) for layer in place.layers]))

    def prepare(self, request: Request) -> Answer:
        """The root directory as it is below, copies of what an overlay cannot copy, the inputs, and the script."""
        from toolkit.builds.layers.copies import copy_up, find_specials, take_status
        from toolkit.builds.layers.copying import place_inputs, stage_inputs
        from toolkit.builds.layers.finishing import place_host_files, refuse_reserved, write_script

        refuse_reserved(self.lower, [path for _, path in request.inputs])
        specials = find_specials(self.lower, Path(self.place.kept))
        status = stage_inputs(os.path.join(self.place.overlay, _INPUTS), request.inputs)
        if status != 0:
            return Answer(status=status)
        self.upper = _confine(self.place.overlay)
        take_status(self.lower, self.lower.root, self.upper)
        self.copies = copy_up(self.upper, self.lower, specials)
        place_inputs(self.upper, self.lower, request.inputs, f"/{_INPUTS}")
        shutil.rmtree(f"/{_INPUTS}")
        if request.script:
            write_script(self.upper, request.script)
        return Answer(bindable=place_host_files(self.upper, self.lower))

    def read(self, _request: Request) -> Answer:
        """The files of the metadata, as the step sees them."""
        from toolkit.builds.layers.metadata import metadata_files
        from toolkit.inventory.formats.images import open_step

        found = metadata_files(open_step(Path(self.upper), self.lower.trees))
        return Answer(files={path: b64encode(content).decode() for path, content in found.items()})

    def finish(self, request: Request) -> Answer:
        """The normal tree, with the mark of a layer."""
        from toolkit.builds.layers.finishing import finish_tree

        files = {path: b64decode(content) for path, content in request.files.items()}
        return Answer(name=finish_tree(self.upper, self.lower, self.copies, files))
