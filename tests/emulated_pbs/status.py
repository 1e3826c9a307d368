"""`qstat`, `qdel` and `pbsnodes`: text, OpenPBS's JSON and Torque's XML."""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from xml.etree import ElementTree

from tests.emulated_pbs import server

_HIDDEN = ("directory", "script", "output", "error", "join", "variables", "task", "array", "deleted", "request",
           "limit", "hosts")  # fmt: skip


def qstat(words: list[str]) -> int:
    if "--version" in words:
        said = "Version: 6.1.2\nCommit: 662e007" if server.is_torque() else "pbs_version = 23.06.06"
        print(said, file=sys.stderr if server.is_torque() else sys.stdout)
        return 0
    options = "".join(word[1:] for word in words if word.startswith("-"))
    if "Q" in options or "B" in options:
        return _queues() if "Q" in options else _server()
    identifiers = [word for word in words if word[0].isdigit()]
    return _torque_jobs(options, identifiers) if server.is_torque() else _jobs(options, identifiers, words)


def _jobs(options: str, identifiers: list[str], words: list[str]) -> int:
    history = "x" in options
    if history and not server.keeps_history():
        return server.fail("qstat", "PBS is not configured to maintain job history", 1)
    found: dict[str, dict[str, Any]] = {}
    status = 0
    for identifier in identifiers:
        jobs = server.matching(identifier)
        ended = bool(jobs) and all(job["job_state"] == "F" for job in jobs.values())
        if not jobs or (ended and not server.keeps_history()):
            status = server.fail("qstat", f"Unknown Job Id {identifier}", 153)
        elif ended and not history:
            said = f"{identifier} Job has finished, use -x or -H to obtain historical job information"
            status = server.fail("qstat", said, 35)
        else:
            found |= jobs
    if not identifiers:
        found = {name: job for name, job in server.jobs().items() if history or job["job_state"] != "F"}
    shown = {name: _shown(job) for name, job in found.items()}
    if "F" in options and "json" in words:
        print(json.dumps({"pbs_version": "23.06.06", "pbs_server": server.SERVER, "Jobs": shown}, indent=4))
    else:
        _print_text(shown, full="f" in options)
    return status


def _torque_jobs(options: str, identifiers: list[str]) -> int:
    found: dict[str, dict[str, Any]] = {}
    status = 0
    for identifier in identifiers or list(server.jobs()):
        jobs = {
            name: job
            for name, job in server.matching(identifier).items()
            if job["job_state"] != "C" or server.keeps_history()
        }
        if not jobs and identifiers:
            status = server.fail("qstat", f"Unknown Job Id Error {identifier}", 153)
        found |= jobs
    shown = {name: _shown(job) for name, job in found.items()}
    if "x" not in options:
        _print_text(shown, full="f" in options)
        return status
    data = ElementTree.Element("Data")
    for name, job in shown.items():
        element = ElementTree.SubElement(data, "Job")
        ElementTree.SubElement(element, "Job_Id").text = name
        for key, value in job.items():
            _add(element, key, value)
    if shown:
        print(f'<?xml version="1.0"?>\n{ElementTree.tostring(data, encoding="unicode")}')
    return status


def _add(element: ElementTree.Element, key: str, value: Any) -> None:
    child = ElementTree.SubElement(element, key)
    if isinstance(value, dict):
        for name, inner in value.items():
            _add(child, name, inner)
    else:
        child.text = str(value)


def _print_text(shown: dict[str, dict[str, Any]], *, full: bool) -> None:
    for name, job in shown.items():
        if not full:
            owner = os.environ.get("LOGNAME", "")
            print(f"{name:<18}{job['Job_Name']:<17}{owner:<17}0 {job['job_state']} {job['queue']}")
            continue
        print(f"Job Id: {name}")
        print("".join(f"    {key} = {value}\n" for key, value in job.items()))


def _shown(job: dict[str, Any]) -> dict[str, Any]:
    shown = {key: value for key, value in job.items() if key not in _HIDDEN and value is not None}
    shown["Resource_List"] = {key: value for key, value in job["Resource_List"].items() if key != "never"}
    shown["Variable_List"] = {"PBS_O_WORKDIR": job["directory"]}
    started = int(job["job_state"] not in ("Q", "H"))
    if server.is_torque():
        shown.pop("project")
        listed = ",".join(f"{key}={value}" for key, value in shown["Variable_List"].items())
        return {**shown, "Variable_List": listed, **({"start_count": 1} if started else {})}
    if "never" in job["Resource_List"]:
        shown["comment"] = "Can Never Run: Insufficient amount of resource: ncpus or ngpus"
    elif job["job_state"] == "Q":
        shown["comment"] = "Not Running: Insufficient amount of resource: ngpus"
    return {**shown, "run_count": started}


def _queues() -> int:
    for name in server.QUEUES:
        print(
            f"Queue: {name}\n    queue_type = Execution\n    total_jobs = 0\n    enabled = True\n    started = True\n"
        )
    return 0


def _server() -> int:
    print(f"Server: {server.SERVER}\n    server_state = Active\n    default_queue = {server.QUEUES[0]}\n")
    return 0


def qdel(words: list[str]) -> int:
    status = 0
    for identifier in (word for word in words if word[0].isdigit()):
        jobs = {name: job for name, job in server.matching(identifier).items() if job["job_state"] not in server.ENDED}
        if not jobs:
            status = server.fail("qdel", f"Unknown Job Id {identifier}", 153)
        for name in jobs:
            with server.locked():
                job = server.load(name)
                if job["job_state"] not in ("Q", "H"):
                    job["deleted"] = True
                elif server.is_torque():
                    job |= {"job_state": "C", "exit_status": 271}
                else:
                    job |= {"job_state": "F", "substate": 91}
                server.save(name, job)
    return status


def pbsnodes(words: list[str]) -> int:
    del words
    memory = f"{server.MEMORY * 1024}kb"
    if server.is_torque():
        data = ElementTree.Element("Data")
        for name in server.nodes():
            status = f"opsys=linux,physmem={memory},ncpus={server.CORES},state=free"
            node = {"name": name, "state": "free", "np": server.CORES, "ntype": "cluster", "status": status}
            _add(data, "Node", {**node, "gpus": server.GPUS})
        print(ElementTree.tostring(data, encoding="unicode"))
        return 0
    nodes = {}
    for name in server.nodes():
        has = {"arch": "linux", "host": name, "mem": memory, "ncpus": server.CORES, "ngpus": server.GPUS, "vnode": name}
        nodes[name] = {"Mom": name, "state": "free", "pcpus": server.CORES, "resources_available": has}
    print(json.dumps({"pbs_version": "23.06.06", "pbs_server": server.SERVER, "nodes": nodes}, indent=4))
    return 0
