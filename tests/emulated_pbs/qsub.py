"""`qsub`: reads the lines of a script, refuses what the server would refuse, and starts a process for each job."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.emulated_pbs import server
from tests.emulated_pbs.language import Tasks, parse_resources, parse_tasks

if TYPE_CHECKING:
    from tests.emulated_pbs.language import Request

_NAME = re.compile(r"[A-Za-z0-9_+.-]{1,230}")


def qsub(words: list[str]) -> int:
    torque = server.is_torque()
    parser = _parser("t" if torque else "J")
    script = Path(parser.parse_args(words).script)
    text = script.read_text()
    options = parser.parse_args([*_directives(text), *words])  # the command line wins
    name = options.N or script.name
    if not (name.isprintable() and " " not in name and len(name) <= 256 if torque else _NAME.fullmatch(name)):
        return server.fail("qsub", "illegal -N value", 2)
    if options.q is not None and options.q not in server.QUEUES:
        return server.fail("qsub", _unknown_queue(options.q, torque=torque), 170)
    request = parse_resources(options.l, torque=torque)
    if request is None:
        return server.fail("qsub", "illegal -l value", 2)
    possible = _is_possible(request)
    if torque and not possible:
        said = "submit error (Job exceeds queue resource limits MSG=cannot locate feasible nodes (nodes file is empty "
        return server.fail("qsub", f"{said}or requested nodes exceed all systems))", 188)
    array = options.t if torque else options.J
    tasks = parse_tasks(array, torque=torque) if array is not None else Tasks((0,), None)
    if tasks is None:
        return server.fail("qsub", f"illegal -{'t' if torque else 'J'} value", 2)
    number = _next_number()
    kept = server.place() / "scripts" / f"{number}.SC"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(text)
    kept.chmod(0o700)
    whole = f"{number}[].{server.SERVER}" if array is not None else f"{number}.{server.SERVER}"
    common = {
        "job_state": "H" if options.held else "Q",
        "queue": options.q or server.QUEUES[0],
        "Resource_List": request.shown if possible else {**request.shown, "never": True},
        "substate": 20 if options.held else 10,
        "Account_Name": options.A,
        "project": options.P or "_pbs_project_default",
        "request": {key: value for key, value in vars(request).items() if key != "shown"},
        "limit": tasks.limit,
        "directory": str(Path.cwd()),
        "script": str(kept),
        "output": options.o,
        "error": options.e,
        "join": options.j,
        "variables": _variables(options),
        "array": whole if array is not None else None,
    }
    for task in tasks.numbers:
        own = f"{number}[{task}].{server.SERVER}" if array is not None else whole
        called = f"{name}-{task}" if torque and array is not None else name
        server.save(own, {**common, "Job_Name": called, "task": task})
    for task in tasks.numbers:
        _start(f"{number}[{task}].{server.SERVER}" if array is not None else whole)
    print(whole)
    return 0


def _parser(array: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("qsub", add_help=False, allow_abbrev=False)
    for letter in f"Noeq{array}PASWkrmMpu":
        parser.add_argument(f"-{letter}")
    parser.add_argument("-j", default="n")
    parser.add_argument("-l", action="append", default=[])
    parser.add_argument("-v", default="")
    parser.add_argument("-V", action="store_true")
    parser.add_argument("-h", action="store_true", dest="held")
    parser.add_argument("script")
    return parser


def _directives(text: str) -> list[str]:
    """The words of the `#PBS` lines before the first command."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("#PBS"):
            found += shlex.split(line.removeprefix("#PBS"))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def _variables(options: Any) -> dict[str, str]:
    given = dict(part.partition("=")[::2] for part in options.v.split(",") if "=" in part)
    here = {name: os.environ[name] for name in options.v.split(",") if name in os.environ}
    return {**(dict(os.environ) if options.V else {}), **given, **here}


def _unknown_queue(name: str, *, torque: bool) -> str:
    return f"submit error (Unknown queue MSG=cannot locate queue {name})" if torque else "Unknown queue"


def _is_possible(request: Request) -> bool:
    fits = request.cores <= server.CORES and request.gpus <= server.GPUS and request.memory <= server.MEMORY
    return fits and (not request.scatter or request.nodes <= len(server.nodes()))


def _next_number() -> int:
    with server.locked():
        counter = server.place() / "number"
        number = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(number))
    return number


def _start(name: str) -> None:
    subprocess.Popen(
        [sys.executable, "-m", "tests.emulated_pbs", "mom", name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
