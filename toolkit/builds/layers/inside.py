"""What is done to a layer's upper directory as root of the user's namespace: in a process of its own.

A request and an answer are JSON files: names that are not UTF-8 are kept. Only this module knows them.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.namespace import as_owner
from toolkit.support.processes import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.builds.layers.below import Lower

# -I: nothing of the working directory or the user is imported. The first argument is where ctk lies.
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolkit.builds.layers.inside import main; main()"


@dataclass(frozen=True, slots=True)
class Request:
    """The action is `prepare` or `normalise`; `layers` lie over `image`, the lowest first.

    `kept` is the directory where what was found in a tree is kept for the next layer.
    """

    action: str
    upper: str
    image: str
    kept: str
    layers: tuple[str, ...] = ()
    inputs: tuple[tuple[str, str], ...] = ()
    copies: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`copies` are what was prepared; `name` that of the layer, None if it is empty; `refused` says why there can be
    no layer."""

    name: str | None = None
    refused: str | None = None
    copies: Mapping[str, Sequence[int]] = field(default_factory=dict)


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
    from toolkit.builds.layers.normalise import CannotNormalise

    request = Request(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    lower = Lower.open(Path(request.image), [Path(layer) for layer in request.layers])
    status = 0
    try:
        if request.action == "prepare":
            status, answer = _prepared(request, lower)
        else:
            answer = Answer(name=_finished(request, lower))
    except CannotNormalise as error:
        answer = Answer(refused=str(error))
    Path(sys.argv[2]).write_text(json.dumps(asdict(answer)), encoding="utf-8")
    sys.exit(status)


def _prepared(request: Request, lower: Lower) -> tuple[int, Answer]:
    """The root directory as it is below, copies of what an overlay cannot copy, and the inputs."""
    from toolkit.builds.layers.copies import copy_up, take_status
    from toolkit.builds.layers.copying import copy_inputs

    take_status(lower, lower.root, request.upper)
    copies = copy_up(request.upper, lower, Path(request.kept))
    return copy_inputs(request.upper, lower, request.inputs), Answer(copies=copies)


def _finished(request: Request, lower: Lower) -> str | None:
    from toolkit.builds.layers.copies import Copy, copy_directories, remove_unchanged
    from toolkit.builds.layers.digest import digest_of
    from toolkit.builds.layers.links import check_links
    from toolkit.builds.layers.normalise import MARK, METADATA, CannotNormalise, normalise, own_attributes

    upper = request.upper
    remove_unchanged(upper, {path: Copy(*state) for path, state in request.copies.items()})
    check_links(lower, normalise(upper, lower), request.copies)
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
