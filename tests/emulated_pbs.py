"""An emulation of OpenPBS for tests: `qsub`, `qstat`, `qdel` and `pbsnodes` of one server and one node, `pbs1`.

No archive has OpenPBS. This does what a real server, 23.06, was seen to do: jobs start in the home directory, what they
print is spooled and copied at the end, a job whose output cannot be copied has the exit status 0. It runs as the user,
with nothing but the standard library. EMULATED_PBS names its directory; `history` in it enables `qstat -x`.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = "pbs1"
CORES, GPUS = 8, 4
QUEUES = ("workq", "gpuq")
_STAGING = 3.0  # seconds for which a copy is tried again; 32 on the real server
_KILL_DELAY = 2.0  # seconds between SIGTERM and SIGKILL; 10 there
_NAME = re.compile(r"[A-Za-z0-9_+.-]{1,230}")
_PASSED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL")


def place() -> Path:
    return Path(os.environ["EMULATED_PBS"])


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    with (place() / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _file(name: str) -> Path:
    return place() / "jobs" / f"{name}.json"


def _load(name: str) -> dict[str, Any]:
    return json.loads(_file(name).read_text())


def _save(name: str, job: dict[str, Any]) -> None:
    new = _file(name).with_suffix(".new")
    new.write_text(json.dumps(job))
    new.rename(_file(name))


def _update(name: str, **values: Any) -> dict[str, Any]:
    with _locked():
        job = {**_load(name), **values}
        _save(name, job)
    return job


def _all() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted((place() / "jobs").glob("*.json"))}


def _fail(program: str, message: str, status: int) -> int:
    print(f"{program}: {message}", file=sys.stderr)
    return status


# --- qsub


def _directives(text: str) -> list[str]:
    """The words of the `#PBS` lines before the first command."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith("#PBS"):
            found += shlex.split(line.removeprefix("#PBS"))
        elif line.strip() and not line.startswith("#"):
            break
    return found


def qsub(words: list[str]) -> int:
    parser = argparse.ArgumentParser("qsub", add_help=False)
    for letter in "NoeqJPASWkrmMpu":
        parser.add_argument(f"-{letter}")
    parser.add_argument("-j", default="n")
    parser.add_argument("-l", action="append", default=[])
    parser.add_argument("-v", default="")
    parser.add_argument("-V", action="store_true")
    parser.add_argument("-h", action="store_true", dest="held")
    parser.add_argument("script")
    script = Path(parser.parse_args(words).script)
    text = script.read_text()
    options = parser.parse_args([*_directives(text), *words])  # the command line wins
    name = options.N or script.name
    if not _NAME.fullmatch(name):
        return _fail("qsub", "illegal -N value", 2)
    if options.q is not None and options.q not in QUEUES:
        return _fail("qsub", "Unknown queue", 170)
    resources = _resources(options.l)
    if resources is None:
        return _fail("qsub", "illegal -l value", 2)
    if int(resources["ncpus"]) > CORES or int(resources["ngpus"]) > GPUS:
        resources["never"] = "Can Never Run: Insufficient amount of resource: ncpus or ngpus"
    tasks = _tasks(options.J)
    if tasks is None:
        return _fail("qsub", "illegal -J value", 2)
    with _locked():
        counter = place() / "number"
        number = int(counter.read_text()) + 1 if counter.exists() else 1
        counter.write_text(str(number))
    (place() / "scripts").mkdir(exist_ok=True)
    kept = place() / "scripts" / f"{number}.SC"
    kept.write_text(text)
    kept.chmod(0o700)
    whole = f"{number}[].{SERVER}" if options.J else f"{number}.{SERVER}"
    variables = dict(part.partition("=")[::2] for part in options.v.split(",") if "=" in part)
    variables |= {name: os.environ[name] for name in options.v.split(",") if name in os.environ}  # as they are here
    common = {
        "Job_Name": name,
        "job_state": "H" if options.held else "Q",
        "queue": options.q or QUEUES[0],
        "Resource_List": resources,
        "substate": 20 if options.held else 10,
        "project": options.P or "_pbs_project_default",
        "directory": str(Path.cwd()),
        "script": str(kept),
        "output": options.o,
        "error": options.e,
        "join": options.j,
        "variables": {**(dict(os.environ) if options.V else {}), **variables},
    }
    for task in tasks:
        own = f"{number}[{task}].{SERVER}" if options.J else whole
        _save(own, {**common, "task": task, "array": whole if options.J else None})
        subprocess.Popen(
            [sys.executable, __file__, "mom", own],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
    print(whole)
    return 0


def _resources(lines: list[str]) -> dict[str, Any] | None:
    """The `Resource_List` of `-l` options; None if one cannot be read."""
    found: dict[str, Any] = {"ncpus": 1, "ngpus": 0, "nodect": 1, "walltime": "120:00:00"}
    for line in lines:
        if line.startswith(("select=", "nodes=")):
            key, _, value = line.partition("=")
            count, *parts = value.split(":")
            pairs = dict(part.partition("=")[::2] for part in parts)
            if not count.isdigit() or not all(pairs.values()):
                return None
            cores = pairs.get("ncpus") or pairs.get("ppn") or "1"
            found |= {key: value, "nodect": int(count), "ncpus": int(count) * int(cores)}
            found["ngpus"] = int(count) * int(pairs.get("ngpus") or pairs.get("gpus") or 0)
            found |= {"mem": pairs["mem"]} if "mem" in pairs else {}
            continue
        for part in line.split(","):
            key, equals, value = part.partition("=")
            if not equals or (key == "walltime" and not re.fullmatch(r"\d+|(\d+:){1,2}\d+", value)):
                return None
            found[key] = value
    return found


def _tasks(text: str | None) -> list[int] | None:
    if text is None:
        return [0]
    match = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%\d+)?", text)
    if match is None or int(match[2]) <= int(match[1]):
        return None
    return list(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))


# --- mom: the process of one job


def mom(name: str) -> int:
    while True:
        with _locked():
            job = _load(name)
            if job["job_state"] == "F":
                return 0
            if job["job_state"] == "Q" and "never" not in job["Resource_List"] and _fits(job):
                job |= {"job_state": "R", "substate": 42, "exec_host": f"{SERVER}/0", "stime": time.time()}
                _save(name, job)
                break
        time.sleep(0.1)
    spool = place() / "spool"
    spool.mkdir(exist_ok=True)
    outputs = {letter: spool / f"{name}.{letter}" for letter in ("OU", "ER")}
    status, substate = _execute(name, job, outputs)
    _update(name, job_state="E", substate=51)
    staged = _stage_out(job, name, outputs)
    _update(name, job_state="F", substate=substate, Exit_status=status, Stageout_status=staged)
    return 0


def _fits(job: dict[str, Any]) -> bool:
    running = [other["Resource_List"] for other in _all().values() if other["job_state"] in ("R", "E")]
    limits = {"ncpus": CORES, "ngpus": GPUS}
    return all(
        sum(int(used[name]) for used in running) + int(job["Resource_List"][name]) <= limit
        for name, limit in limits.items()
    )


def _execute(name: str, job: dict[str, Any], outputs: dict[str, Path]) -> tuple[int, int]:
    """Run the script in the home directory; its exit status and the substate, as the server has them."""
    home = os.environ["HOME"]
    temporary = place() / f"pbs.{name}"
    temporary.mkdir()
    nodes = place() / f"{name}.nodes"
    nodes.write_text(f"{SERVER}\n" * int(job["Resource_List"]["nodect"]))
    environment = {key: value for key, value in os.environ.items() if key in _PASSED} | job["variables"]
    environment |= {f"PBS_O_{key}": os.environ[key] for key in _PASSED if key in os.environ}
    environment |= {
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": name,
        "PBS_JOBNAME": job["Job_Name"],
        "PBS_NODEFILE": str(nodes),
        "PBS_O_HOST": SERVER,
        "PBS_O_QUEUE": job["queue"],
        "PBS_O_WORKDIR": job["directory"],
        "PBS_QUEUE": job["queue"],
        "NCPUS": str(job["Resource_List"]["ncpus"]),
        "OMP_NUM_THREADS": str(job["Resource_List"]["ncpus"]),
        "TMPDIR": str(temporary),
    }
    if job["array"]:
        environment |= {"PBS_ARRAY_INDEX": str(job["task"]), "PBS_ARRAY_ID": job["array"]}
    environment["EMULATED_PBS"] = str(place())  # for a qstat in the job
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
            cwd=home,
            env=environment,
            start_new_session=True,
            text=True,
        )
        _update(name, session_id=shell.pid)
        assert shell.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            shell.stdin.write(f"{job['script']}\n")
            shell.stdin.close()
        limit = _seconds(str(job["Resource_List"]["walltime"]))
        ended = _wait(name, shell, limit)
        if ended == "limit":
            out.seek(0, os.SEEK_END)
            out.write(f"=>> PBS: job killed: walltime {int(limit) + 1} exceeded limit {int(limit)}\n")
    shutil.rmtree(temporary, ignore_errors=True)
    nodes.unlink()
    if ended == "limit":
        return -29, 93
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
        reason = "limit" if time.monotonic() - started > limit else "deleted" if _load(name).get("deleted") else None
        if reason is not None:
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    shell.wait(_KILL_DELAY)
                    break
            return reason


def _stage_out(job: dict[str, Any], name: str, outputs: dict[str, Path]) -> int:
    """Copy what the job printed; 1 if that worked. What cannot be copied stays in `undelivered`."""
    number = name.partition("[")[0].partition(".")[0]
    task = f".{job['task']}" if job["array"] else ""
    good = True
    for letter, given, suffix in (("OU", job["output"], "o"), ("ER", job["error"], "e")):
        if letter == "ER" and job["join"] == "oe":
            outputs[letter].unlink()
            continue
        target = Path(job["directory"], (given or "").partition(":")[2] or given or "")
        if given is None or target.is_dir():
            target = (target if given else Path(job["directory"])) / f"{job['Job_Name']}.{suffix}{number}{task}"
        deadline = time.monotonic() + _STAGING
        while True:
            try:
                shutil.copyfile(outputs[letter], target)
                target.chmod(0o600)
                outputs[letter].unlink()
                break
            except OSError:
                if time.monotonic() > deadline:
                    (place() / "undelivered").mkdir(exist_ok=True)
                    outputs[letter].rename(place() / "undelivered" / outputs[letter].name)
                    good = False
                    break
                time.sleep(0.5)
    return int(good)


def _seconds(text: str) -> float:
    total = 0.0
    for part in text.split(":"):
        total = total * 60 + float(part)
    return total


# --- qstat, qdel, pbsnodes


def _matching(identifier: str) -> dict[str, dict[str, Any]]:
    jobs = _all()
    whole = identifier if "." in identifier else f"{identifier}.{SERVER}"
    return {name: job for name, job in jobs.items() if whole in (name, job["array"])}


def qstat(words: list[str]) -> int:
    if "--version" in words:
        print("pbs_version = 23.06.06")
        return 0
    identifiers = [word for word in words if word[0].isdigit()]
    options = "".join(word[1:] for word in words if word.startswith("-"))
    history = "x" in options
    if history and not (place() / "history").exists():
        return _fail("qstat", "PBS is not configured to maintain job history", 1)
    found, status = {}, 0
    for identifier in identifiers:
        jobs = _matching(identifier)
        ended = bool(jobs) and all(job["job_state"] == "F" for job in jobs.values())
        if not jobs or (ended and not (place() / "history").exists()):
            status = _fail("qstat", f"Unknown Job Id {identifier}", 153)
        elif ended and not history:
            said = f"{identifier} Job has finished, use -x or -H to obtain historical job information"
            status = _fail("qstat", said, 35)
        else:
            found |= jobs
    if not identifiers:
        found = {name: job for name, job in _all().items() if history or job["job_state"] != "F"}
    if "f" not in options:
        for name, job in found.items():
            print(
                f"{name:<18}{job['Job_Name']:<17}{os.environ.get('LOGNAME', ''):<17}0 {job['job_state']} {job['queue']}"
            )
        return status
    shown = {name: _shown(job) for name, job in found.items()}
    if "F" in options and "json" in words:
        print(json.dumps({"pbs_version": "23.06.06", "pbs_server": SERVER, "Jobs": shown}, indent=4))
        return status
    for name, job in shown.items():
        print(f"Job Id: {name}")
        print("".join(f"    {key} = {value}\n" for key, value in job.items()))
    return status


def _shown(job: dict[str, Any]) -> dict[str, Any]:
    hidden = ("directory", "script", "output", "error", "join", "variables", "task", "array", "deleted")
    shown = {key: value for key, value in job.items() if key not in hidden}
    if "never" in job["Resource_List"]:
        shown["comment"] = job["Resource_List"]["never"]
    elif job["job_state"] == "Q":
        shown["comment"] = "Not Running: Insufficient amount of resource: ngpus"
    return {**shown, "Variable_List": {"PBS_O_WORKDIR": job["directory"]}, "run_count": int(job["job_state"] != "Q")}


def qdel(words: list[str]) -> int:
    status = 0
    for identifier in (word for word in words if word[0].isdigit()):
        jobs = {name: job for name, job in _matching(identifier).items() if job["job_state"] != "F"}
        if not jobs:
            status = _fail("qdel", f"Unknown Job Id {identifier}", 153)
        for name in jobs:
            with _locked():
                job = _load(name)
                ended = {"job_state": "F", "substate": 91} if job["job_state"] in ("Q", "H") else {"deleted": True}
                _save(name, {**job, **ended})
    return status


def pbsnodes(words: list[str]) -> int:
    del words
    available = {"arch": "linux", "host": SERVER, "mem": "16384000kb", "ncpus": CORES, "ngpus": GPUS, "vnode": SERVER}
    node = {"Mom": SERVER, "state": "free", "pcpus": CORES, "resources_available": available, "resources_assigned": {}}
    print(json.dumps({"pbs_version": "23.06.06", "pbs_server": SERVER, "nodes": {SERVER: node}}, indent=4))
    return 0


if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    (place() / "jobs").mkdir(parents=True, exist_ok=True)
    if program == "mom":
        sys.exit(mom(arguments[0]))
    sys.exit({"qsub": qsub, "qstat": qstat, "qdel": qdel, "pbsnodes": pbsnodes}[program](arguments))
