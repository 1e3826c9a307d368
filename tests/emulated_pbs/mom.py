"""The process of one job: waits for nodes, runs the script as pbs_mom does, and copies its output."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.emulated_pbs import server
from tests.emulated_pbs.language import seconds

_STAGING = 3.0  # seconds for which a copy is tried again; 32 on the real server
_KILL_DELAY = 4.0  # seconds between SIGTERM and SIGKILL; 10 there
_PASSED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL")


def run_job(name: str) -> int:
    while True:
        with server.locked():
            job = server.load(name)
            if job["job_state"] in server.ENDED:
                return 0
            hosts = _place(job) if job["job_state"] == "Q" and "never" not in job["Resource_List"] else None
            if hosts:
                cores = job["request"]["cores"]
                where = f"/0-{cores - 1}" if server.is_torque() else f"/0*{cores}"
                job |= {"job_state": "R", "substate": 42, "hosts": hosts, "stime": time.time()}
                job |= {"exec_host": "+".join(f"{host}{where}" for host in hosts)}
                server.save(name, job)
                break
        time.sleep(0.1)
    spool = server.place() / "spool"
    spool.mkdir(exist_ok=True)
    outputs = {letter: spool / f"{name}.{letter}" for letter in ("OU", "ER")}
    status, substate = _execute(name, job, outputs)
    server.update(name, job_state="E", substate=51)
    staged = _stage_out(job, name, outputs)
    if server.is_torque():  # which says nothing of its copies
        server.update(name, job_state="C", substate=59, exit_status=status)
    else:
        server.update(name, job_state="F", substate=substate, Exit_status=status, Stageout_status=staged)
    return 0


def _place(job: dict[str, Any]) -> list[str] | None:
    """The node of each chunk; None as long as there is no room, or the array has enough tasks that run."""
    running = [other for other in server.jobs().values() if other["job_state"] in ("R", "E")]
    if job["limit"] and sum(other["array"] == job["array"] for other in running) >= job["limit"]:
        return None
    limits = {"cores": server.CORES, "gpus": server.GPUS, "memory": server.MEMORY}
    free = {node: dict(limits) for node in server.nodes()}
    for other in running:
        for host in other["hosts"]:
            free[host] = {key: left - other["request"][key] for key, left in free[host].items()}
    wanted = {key: job["request"][key] for key in limits}
    hosts: list[str] = []
    for _ in range(job["request"]["nodes"]):
        room = (node for node, left in free.items() if all(left[key] >= wanted[key] for key in limits))
        host = next((node for node in room if not (job["request"]["scatter"] and node in hosts)), None)
        if host is None:
            return None
        free[host] = {key: left - wanted[key] for key, left in free[host].items()}
        hosts.append(host)
    return hosts


def _environment(name: str, job: dict[str, Any], nodefile: Path, temporary: Path) -> dict[str, str]:
    request = job["request"]
    environment: dict[str, str] = {key: value for key, value in os.environ.items() if key in _PASSED}
    environment |= job["variables"]
    environment |= {f"PBS_O_{key}": os.environ[key] for key in _PASSED if key in os.environ}
    environment |= {
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": name,
        "PBS_JOBNAME": job["Job_Name"],
        "PBS_NODEFILE": str(nodefile),
        "PBS_O_HOST": server.SERVER,
        "PBS_O_QUEUE": job["queue"],
        "PBS_O_WORKDIR": job["directory"],
        "PBS_QUEUE": job["queue"],
        "TMPDIR": str(temporary),
        "EMULATED_PBS": str(server.place()),  # for a qstat in the job
    }
    if server.is_torque():
        environment |= {"PBS_NUM_NODES": str(request["nodes"]), "PBS_NUM_PPN": str(request["cores"])}
        environment |= {"PBS_ARRAYID": str(job["task"])} if job["array"] else {}
        if request["gpus"]:
            gpus = nodefile.with_suffix(".gpus")
            gpus.write_text("".join(f"{host}-gpu{gpu}\n" for host in job["hosts"] for gpu in range(request["gpus"])))
            environment["PBS_GPUFILE"] = str(gpus)
        return environment
    cores = str(request["cores"])
    environment |= {"PBS_ARRAY_INDEX": str(job["task"]), "PBS_ARRAY_ID": job["array"]} if job["array"] else {}
    return {**environment, "NCPUS": cores, "OMP_NUM_THREADS": cores}


def _execute(name: str, job: dict[str, Any], outputs: dict[str, Path]) -> tuple[int, int]:
    """Run the script in the home directory; its exit status and the substate, as the server has them."""
    temporary = server.place() / f"pbs.{name}"
    temporary.mkdir()
    nodefile = server.place() / f"{name}.nodes"
    nodefile.write_text("".join(f"{host}\n" * job["request"]["lines"] for host in job["hosts"]))
    previous = os.umask(0o077)
    with outputs["OU"].open("w") as out, outputs["ER"].open("w") as error:
        os.umask(previous)
        # The login shell reads the path of the script on its standard input, and executes it.
        shell = subprocess.Popen(
            ["-bash"],
            executable="/bin/bash",
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out if job["join"] == "oe" else error,
            cwd=os.environ["HOME"],
            env=_environment(name, job, nodefile, temporary),
            start_new_session=True,
            text=True,
        )
        server.update(name, session_id=shell.pid)
        assert shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            shell.stdin.write(f"{job['script']}\n")
            shell.stdin.close()
        limit = seconds(str(job["Resource_List"].get("walltime", "120:00:00")))
        ended = _wait(name, shell, limit)
        if ended == "limit":
            out.seek(0, os.SEEK_END)
            out.write(f"=>> PBS: job killed: walltime {int(limit) + 1} exceeded limit {int(limit)}\n")
    shutil.rmtree(temporary, ignore_errors=True)
    nodefile.unlink()
    if ended == "limit":
        return (-11 if server.is_torque() else -29), 93
    if ended == "deleted":
        return 256 + signal.SIGTERM, 91
    status = shell.returncode
    return (256 - status if status < 0 else status), 92


def _wait(name: str, shell: subprocess.Popen[str], limit: float) -> str:
    """How the shell ended: by itself, at the limit, or by qdel."""
    started = time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            shell.wait(0.1)
            return "itself"
        deleted = server.load(name).get("deleted")
        reason = "limit" if time.monotonic() - started > limit else "deleted" if deleted else None
        if reason is not None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                for pid in _session(shell):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                if _has_ended(shell, _KILL_DELAY):
                    break
            return reason


def _has_ended(shell: subprocess.Popen[str], seconds: float) -> bool:
    """Whether all processes of the job end in this time: the login shell can end before the script that it runs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        shell.poll()
        if not _session(shell):
            return True
        time.sleep(0.02)
    return False


def _session(shell: subprocess.Popen[str]) -> list[int]:
    """The processes that PBS signals: those of the session, in whatever group (mom_mach.c of OpenPBS, kill_session)."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = file.read_text().rpartition(")")[2].split()[:4]
            found += [int(file.parent.name)] if session == str(shell.pid) and state != "Z" else []
    return found


def _stage_out(job: dict[str, Any], name: str, outputs: dict[str, Path]) -> int:
    """Copy what the job printed; 1 if that worked. What cannot be copied stays in `undelivered`."""
    good = True
    for letter, given, suffix in (("OU", job["output"], "o"), ("ER", job["error"], "e")):
        if letter == "ER" and job["join"] == "oe":
            outputs[letter].unlink()
            continue
        target = Path(job["directory"], (given or "").partition(":")[2] or given or "")
        if given is None or target.is_dir():
            target = (target if given else Path(job["directory"])) / _output_name(job, name, suffix)
        deadline = time.monotonic() + _STAGING
        while True:
            try:
                shutil.copyfile(outputs[letter], target)
                target.chmod(0o600)
                outputs[letter].unlink()
                break
            except OSError:
                if time.monotonic() > deadline:
                    (server.place() / "undelivered").mkdir(exist_ok=True)
                    outputs[letter].rename(server.place() / "undelivered" / outputs[letter].name)
                    good = False
                    break
                time.sleep(0.5)
    return int(good)


def _output_name(job: dict[str, Any], name: str, suffix: str) -> str:
    """OpenPBS names the output of a task `NAME.o7.3`, Torque `NAME.o7-3`."""
    number, index = name.partition("[")[0].partition(".")[0], job["task"]
    if not job["array"]:
        return f"{job['Job_Name']}.{suffix}{number}"
    if not server.is_torque():
        return f"{job['Job_Name']}.{suffix}{number}.{index}"
    return f"{job['Job_Name'].removesuffix(f'-{index}')}.{suffix}{number}-{index}"
