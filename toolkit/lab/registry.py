"""The records of all labs: one small file each in the state directory, which names the lab's own directory."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import DEFAULT_NAME, LabPlan
from toolkit.support.errors import CtkError, WrongInput
from toolkit.support.files import locked, write_atomically
from toolkit.support.paths import state_directory
from toolkit.support.processes import command_line
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that was started. `host` matters if homes are shared: its processes are on that host only.

    `port` is the controller's; the nodes listen on those that follow it. `boot` is what `this_boot` was: empty if an
    older ctk wrote the record.
    """

    plan: LabPlan
    place: LabPaths
    host: str
    port: int
    boot: str = ""

    @property
    def name(self) -> str:
        return self.plan.name

    def environment(self) -> dict[str, str]:
        """The variables with which plain sbatch, squeue and srun, and `module`, use this lab."""
        variables = {"SLURM_CONF": str(self.place.slurm_conf)}
        if self.place.modulefiles.is_dir():
            others = os.environ.get("MODULEPATH", "").split(os.pathsep)
            paths = [str(self.place.modulefiles), *others]
            variables["MODULEPATH"] = os.pathsep.join(dict.fromkeys(path for path in paths if path))
        return variables


def this_boot() -> str:
    """Identifies this boot of this machine, whatever its host name: boot ID and PID namespace.

    Containers of one machine share its boot (random(4)), but do not see one another's processes.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _directory() -> Path:
    return state_directory() / "labs"


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Allow one `up` or `down` of a lab at a time. If no lab is left at the end, the lock file is removed.

    A process that waits for a removed lock file takes a new one (`locked` compares), and sees that the lab is gone.
    """
    path = _directory() / f"{name}.lock"
    with locked(path):
        try:
            yield
        finally:
            if not _record(name).exists():
                path.unlink(missing_ok=True)


def _record(name: str) -> Path:
    return _directory() / f"{name}.json"


def save(lab: Lab) -> None:
    """Write the record of a lab. Raises MissingOnHost or WrongInput if the state directory is not writable."""
    content = {
        "plan": asdict(lab.plan),
        "directory": str(lab.place.directory),
        "host": lab.host,
        "port": lab.port,
        "boot": lab.boot,
    }
    write_atomically(_record(lab.name), json.dumps(content, indent=2) + "\n", mode=0o600)


def load(name: str) -> Lab | None:
    """Read the record of a lab; None if there is none. Raises WrongInput if the file is damaged."""
    path = _record(name)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        plan = LabPlan(**{**content["plan"], "real_gpus": tuple(content["plan"]["real_gpus"])})
        place = LabPaths(Path(content["directory"]))
        lab = Lab(plan, place, content["host"], content["port"], content.get("boot", ""))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, str(error)) from error
    # `down` removes that directory with its content, so it must be a lab's.
    if not lab.place.directory.name.startswith(f"ctk-{name}-"):
        raise _damaged(path, f"{lab.place.directory} is not the directory of a lab")
    return lab


def _damaged(path: Path, why: str) -> WrongInput:
    return WrongInput(
        f"{path} is damaged: {why}", fix=f"Remove it: {command_line(['rm', str(path)])}", code="damaged-record"
    )


def find(name: str | None) -> Lab:
    """The lab of that name; without a name the only existing lab. Raises WrongInput if there is no such lab."""
    known = names()
    wanted = name or (known[0] if len(known) == 1 else DEFAULT_NAME)
    lab = load(wanted)
    if lab is not None:
        return lab
    if known:
        raise WrongInput(
            f"there is no lab named {wanted!r}.{did_you_mean(wanted, known)} Existing labs: {', '.join(known)}.",
            fix=f"Choose one: --name {known[0]}",
            code="no-such-lab",
        )
    raise WrongInput("there is no lab", fix="Start one: ctk lab up", code="no-such-lab")


def advice() -> str:
    """How to use a practice cluster in this shell: the one that is up on this host, or a new one."""
    try:
        here = [lab.name for lab in map(load, names()) if lab and lab.host == gethostname() and _has_daemons(lab)]
    except CtkError:  # `ctk lab` says what is wrong with the records
        here = []
    if not here:
        return "`ctk lab up` starts a practice cluster on this machine."
    option = f" --name {here[0]}" if len(here) > 1 else ""
    return f'Your practice cluster is up: eval "$(ctk lab env{option})" makes this shell use it.'


def _has_daemons(lab: Lab) -> bool:
    return lab.place.munge_socket.is_socket()


def kept_logs(name: str) -> Path:
    """The directory that keeps the logs of a lab that failed to start, until it is started again."""
    return _directory() / f"{name}.failed"


def forget(name: str) -> None:
    """Remove the record of a lab. Call it with the lock held."""
    _record(name).unlink(missing_ok=True)


def names() -> list[str]:
    """The names of all labs of this user, sorted."""
    return sorted(path.stem for path in _directory().glob("*.json"))
