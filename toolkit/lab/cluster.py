"""Start and stop a lab, as a whole."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit.lab import registry
from toolkit.lab.configuration import Host, bashrc, gres_conf, slurm_conf, task_prolog
from toolkit.lab.daemons import PortTaken, supervisor, wait_until
from toolkit.lab.foreign import foreign_cluster
from toolkit.lab.members import Role, find_members, kill_all
from toolkit.lab.modules import module_definition, write_modulefiles
from toolkit.lab.observe import nodes
from toolkit.lab.paths import choose_place, create
from toolkit.lab.ports import choose_ports
from toolkit.lab.profile import lab_profile
from toolkit.lab.registry import Lab
from toolkit.lab.requirements import find_programs
from toolkit.lab.tracking import write_tracking
from toolkit.scheduler.environment import clean_environment
from toolkit.support.enums import StrEnum
from toolkit.support.errors import MissingOnHost, ProgramFailed, WrongInput
from toolkit.support.files import write_atomically
from toolkit.support.processes import run
from toolkit.support.text import count

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolkit.lab.plan import LabPlan
    from toolkit.lab.requirements import Programs

_ATTEMPTS = 5  # to win the race for ports
_SECONDS_TO_START = 30.0
_SECONDS_PER_NODE = 1.0
_SECONDS_TO_END = 3.0  # how long a job may take to exit by itself when its lab is stopped


class Condition(StrEnum):
    """The condition of a lab. A lab whose nodes are down is still up; one without its controller has crashed."""

    UP = "up"
    CRASHED = "crashed"
    ELSEWHERE = "on another host"


def condition(lab: Lab) -> Condition:
    """Determine the condition of a lab."""
    if not _is_here(lab):
        return Condition.ELSEWHERE
    alive = {member.part for member in find_members(lab.place) if member.role is Role.DAEMON}
    return Condition.UP if {"munged", "slurmctld"} <= alive else Condition.CRASHED


def _is_here(lab: Lab) -> bool:
    """Whether this machine started the lab. Its host name may have changed, or it may have rebooted, since.

    The name of a lab's directory is random, and it is never on a shared disk: a machine that has it started the lab.
    """
    return lab.host == socket.gethostname() or lab.boot == registry.this_boot() != "" or _is_own(lab.place.directory)


def _is_own(directory: Path) -> bool:
    try:
        return directory.lstat().st_uid == os.getuid()
    except OSError:
        return False


def up(plan: LabPlan, *, force: bool = False, on_step: Callable[[str], None] = lambda _: None) -> Lab:
    """Start a lab; return when every node is idle. `on_step` receives a description of each step.

    A crashed lab of that name is removed first. `force` also starts one on a machine of a real cluster.
    Raises WrongInput if one is up or the machine belongs to a cluster, MissingOnHost if programs, ports or space are
    missing, ProgramFailed if a daemon does not start. After an error nothing is left of the lab but the logs of
    a daemon that failed.
    """
    if not force and (cluster := foreign_cluster()) is not None:
        raise WrongInput(
            f"this machine belongs to a cluster: {cluster}",
            fix="Submit your jobs there. To run a lab too, with its own daemons under your account, add --force",
            code="real-scheduler",
        )
    programs = find_programs()
    with registry.lock(plan.name):
        _clean_crashed(plan.name, on_step)
        shutil.rmtree(registry.kept_logs(plan.name), ignore_errors=True)
        return _start_with_free_ports(plan, programs, on_step)


def _clean_crashed(name: str, on_step: Callable[[str], None]) -> None:
    old = registry.load(name)
    if old is None:
        return
    how = condition(old)
    if how is not Condition.CRASHED:
        elsewhere = how is Condition.ELSEWHERE
        use = f"log in to {old.host}" if elsewhere else f'eval "$(ctk lab env --name {name})"'
        gone = f" If {_host_is_gone(old)}" if elsewhere else ""
        raise WrongInput(
            f"the lab {name!r} is {how.value}" + (f", {old.host}" if elsewhere else ""),
            fix=f"Use it: {use}. To start a second one: ctk lab up --name other{gone}",
            code="lab-is-up",
        )
    on_step(f"cleaning up the crashed lab {name!r}")
    _remove(old)


def _start_with_free_ports(plan: LabPlan, programs: Programs, on_step: Callable[[str], None]) -> Lab:
    for attempt in range(1, _ATTEMPTS + 1):
        lab = Lab(plan, choose_place(plan.name), socket.gethostname(), 0, registry.this_boot())
        try:
            # First the record, then the directory: if this process is killed at any point, `down` finds what to remove.
            lab = replace(lab, port=choose_ports(plan.nodes + 1, plan.port))
            registry.save(lab)
            create(lab.place)
            _write_files(lab)
            _start_daemons(lab, programs, on_step)
        except PortTaken:
            _remove(lab)
            if attempt == _ATTEMPTS or plan.port is not None:
                raise
            on_step("another program uses one of the ports; trying others")
        except ProgramFailed as error:
            _keep_logs(lab, error)
            _remove(lab)
            raise
        except BaseException:
            _remove(lab)
            raise
        else:
            return lab
    raise AssertionError("unreachable: the last attempt returns or raises")


def _keep_logs(lab: Lab, error: ProgramFailed) -> None:
    if error.log is None:
        return
    kept = registry.kept_logs(lab.name)
    with contextlib.suppress(OSError, shutil.Error):  # the disk may be the cause of the failure
        shutil.copytree(lab.place.logs, kept)
        error.log = kept / error.log.name


def _write_files(lab: Lab) -> None:
    plan, place = lab.plan, lab.place
    host = Host(socket.gethostname().split(".")[0], _user())
    try:
        for directory in (place.logs, place.state, place.stand_ins, place.profile(plan.name).parent):
            directory.mkdir()
        for node in plan.node_names:
            place.spool(node).mkdir(parents=True)
            place.temporary(node).mkdir(parents=True)
        for number in range(0 if plan.real_gpus else plan.gpus_per_node):
            # slurmd accepts only device files, and does not open them: /dev/null stands for every GPU.
            (place.stand_ins / f"gpu{number}").symlink_to("/dev/null")
    except OSError as error:
        raise MissingOnHost(f"cannot write the lab's files: {error}") from error
    write_atomically(place.munge_key, os.urandom(128), mode=0o600)
    write_atomically(place.slurm_conf, slurm_conf(plan, place, host, lab.port))
    write_atomically(place.gres_conf, gres_conf(plan, place))
    write_atomically(place.profile(plan.name), lab_profile(plan, place))
    definition = module_definition()
    write_atomically(place.task_prolog, task_prolog(plan, place, definition), mode=0o755)
    write_tracking(place)
    write_atomically(place.bashrc, bashrc(plan, place, definition))
    if definition is not None:
        write_modulefiles(place)


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError as error:
        raise MissingOnHost(f"user {os.getuid()} has no entry in the password file, but Slurm needs one") from error


def _start_daemons(lab: Lab, programs: Programs, on_step: Callable[[str], None]) -> None:
    place = lab.place
    with supervisor(place, programs) as new:
        on_step("starting MUNGE")
        munged = new.start_munged()
        wait_until(place.munge_socket.is_socket, [munged], place, seconds=_SECONDS_TO_START)
        on_step("starting the controller")
        controller = new.start_slurmctld()
        wait_until(lambda: controller.listens_on(lab.port), [controller, munged], place, seconds=_SECONDS_TO_START)
        on_step(f"starting {count(lab.plan.nodes, 'node')}")
        daemons = [new.start_slurmd(node) for node in lab.plan.node_names]
        wait_until(
            lambda: [node.state for node in nodes(lab)] == ["idle"] * lab.plan.nodes,
            [*daemons, controller, munged],
            place,
            seconds=_SECONDS_TO_START + _SECONDS_PER_NODE * lab.plan.nodes,
        )


def down(lab: Lab, *, host_is_gone: bool = False, on_step: Callable[[str], None] = lambda _: None) -> None:
    """Stop a lab: end its jobs and daemons, remove its files. Also removes a crashed or half-removed lab.

    `host_is_gone`: the lab's host no longer exists. Raises WrongInput if the lab is on another host, or was stopped by
    another process.
    """
    with registry.lock(lab.name):
        if registry.load(lab.name) != lab:
            raise WrongInput(f"the lab {lab.name!r} was stopped by another process", code="no-such-lab")
        how = condition(lab)
        if how is Condition.ELSEWHERE and not host_is_gone:
            raise WrongInput(
                f"the lab {lab.name!r} runs on the host {lab.host}",
                fix=f"On that host: ctk lab down --name {lab.name}. If {_host_is_gone(lab)}",
                code="lab-elsewhere",
            )
        if how is Condition.UP:
            on_step("cancelling its jobs")
            _cancel_jobs(lab)
        on_step("stopping its daemons")
        _remove(lab)


def _host_is_gone(lab: Lab) -> str:
    return f"{lab.host} no longer exists: ctk lab down --name {lab.name} --host-is-gone"


def _cancel_jobs(lab: Lab) -> None:
    """Let jobs, and the srun and salloc commands that wait for them, end in an orderly way."""
    import psutil

    with contextlib.suppress(ProgramFailed):  # a controller that does not respond is killed anyway
        run(["scancel", "--me"], env=clean_environment(lab.environment()), timeout=10)
    jobs = [member.process for member in find_members(lab.place) if member.role is Role.JOB]
    psutil.wait_procs(jobs, timeout=_SECONDS_TO_END)


def _remove(lab: Lab) -> None:
    """Kill every process of the lab, however it was started, and remove its files."""
    kill_all(lab.place)
    try:
        shutil.rmtree(lab.place.directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ProgramFailed(
            f"the lab is down, but its directory {lab.place.directory} could not be removed: {error}"
        ) from error
    registry.forget(lab.name)
