"""What is done to a layer's upper directory as root of the user's namespace: in a process of its own.

A request and an answer are JSON files: names that are not UTF-8 are kept. Only this module knows them.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.namespace import as_owner
from toolkit.support.processes import stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.layers.below import Lower

# -I: nothing of the working directory or the user is imported. The first argument is where ctk lies.
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolkit.builds.layers.inside import main; main()"


@dataclass(frozen=True, slots=True)
class Request:
    """The action is `inputs` or `normalise`; `layers` lie over `image`, the lowest first."""

    action: str
    upper: str
    image: str
    layers: tuple[str, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """`name` of the layer, None if it is empty; `refused` says why there can be no layer."""

    name: str | None = None
    refused: str | None = None


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
    """Answer the request in the file that the first argument names into the second."""
    from toolkit.builds.layers.below import Lower
    from toolkit.builds.layers.copying import copy_inputs
    from toolkit.builds.layers.normalise import CannotNormalise

    request = Request(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    lower = Lower.open(Path(request.image), [Path(layer) for layer in request.layers])
    try:
        if request.action == "inputs":
            answer, status = Answer(), copy_inputs(request.upper, lower, request.inputs)
        else:
            answer, status = Answer(name=_finished(request.upper, lower)), 0
    except CannotNormalise as error:
        answer, status = Answer(refused=str(error)), 0
    Path(sys.argv[2]).write_text(json.dumps(asdict(answer)), encoding="utf-8")
    sys.exit(status)


def _finished(upper: str, lower: Lower) -> str | None:
    from toolkit.builds.layers.digest import digest_of
    from toolkit.builds.layers.links import copy_directories, relink
    from toolkit.builds.layers.normalise import MARK, METADATA, CannotNormalise, normalise, own_attributes

    relink(upper, lower, normalise(upper, lower))
    below, state = lower.status(lower.root), os.lstat(upper)
    same = (state.st_mode, state.st_uid, state.st_gid) == (below.mode, below.uid, below.gid)
    if same and not os.listdir(upper) and not own_attributes(upper):
        return None
    name = f"{MARK}{digest_of(upper)}"
    try:
        copy_directories(upper, lower, METADATA)
        mark = os.path.join(upper, METADATA, name)
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o444))
        os.chmod(mark, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    except OSError as error:
        raise CannotNormalise(f"/{METADATA} cannot hold the mark of a layer: {error.strerror}") from error
    return name
