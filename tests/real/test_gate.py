"""The GPU gate and the GPU monitor in jobs on a real Slurm, with a stand-in for the driver on each node."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.driver import compile_driver
from tests.real.conftest import LOWER
from tests.real.gpu_nodes import behaving, small_torch
from tests.real.jobs import Jobs
from tests.real.labs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import PracticeCluster

# What is wrong with the driver of a node; n1 has a good one.
BROKEN = {
    "n2": "int cuInit(unsigned flags) { return 803; }",
    "n3": "#include <unistd.h>\nint cuInit(unsigned flags) { for (;;) pause(); }",
    "n4": "#include <signal.h>\nint cuInit(unsigned flags) { return raise(SIGSEGV); }",
}
# The runtime asks it for the libraries of the driver, and takes nvidia-smi from PATH.
SHIM = """#!/bin/sh
for library in {directory}/$SLURMD_NODENAME/*.so.1; do
    echo "	$(basename "$library") (libc6,x86-64) => $library"
done
exec /sbin/ldconfig -p
"""
SMI = """#!/bin/sh
if [ "$SLURMD_NODENAME" = n1 ]; then echo "GPU 0: Stand-in"; echo "GPU 1: Stand-in"; exit; fi
echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18
"""


IGNORING = """#!/bin/sh
[ "$SLURMD_NODENAME" != n2 ] || exec {real} -c {directory}/apptainer.conf "$@"
exec {real} "$@"
"""


@pytest.fixture
def jobs(lab: PracticeCluster, ground: Path, base_image: Path) -> Iterator[Jobs]:
    directory = ground / f"gate-{time.monotonic_ns()}"
    directory.mkdir()
    subprocess.run(["chown", lab.user.name, str(directory)], check=True)
    yield Jobs(lab, directory, base_image)
    lab.user.run("scancel", "--me", cwd=directory, env=lab.environment)


@pytest.fixture
def drivers(lab: PracticeCluster, ground: Path) -> Iterator[Path]:
    """The stand-in drivers of the lab's nodes; without this fixture the lab has none."""
    directory = ground / f"drivers-{time.monotonic_ns()}"
    compile_driver(directory / "n1")
    for node, source in BROKEN.items():
        compile_driver(directory / node)
        compiler = ["gcc", "-shared", "-fPIC", "-x", "c", "-Wl,-soname,libcuda.so.1", "-", "-o"]
        subprocess.run([*compiler, str(directory / node / "libcuda.so.1")], input=source, text=True, check=True)
    programs = Path(lab.environment["SLURM_CONF"]).parent / "bin"
    written = {programs / "ldconfig.real": SHIM.format(directory=directory), programs / "nvidia-smi": SMI}
    for path, text in written.items():
        path.write_text(text)
        path.chmod(0o755)
    yield directory
    for path in written:
        path.unlink()


def own_lines(log: str) -> str:
    """A log without the lines of ctk and of Slurm."""
    return "".join(line for line in log.splitlines(True) if not line.startswith(("ctk: ", "slurmstepd", "srun: ")))


def on(node: str) -> str:
    return f"--directive=--nodelist={node}"


def test_stand_in_gpus_are_not_checked(jobs: Jobs) -> None:
    jobs.write("plain", "--gpus", "1", on("n1"), "--", "echo", "the words")
    jobs.write("both", "--gpus", "2", "--nodes", "2", on("n1,n2"), "--", "echo", "the words")
    jobs.write("watched", "--gpus", "2", "--nodes", "2", "--gpu-monitor", on("n1,n2"), "--", "true")
    numbers = {name: jobs.submit(name) for name in ("plain", "both", "watched")}
    assert jobs.finish(numbers["watched"]) == "COMPLETED"
    log = jobs.log(f"watched-{numbers.pop('watched')}")
    assert log.count("stand-in GPU, not measured\n") == 2, log
    assert "error" not in log
    for name, job in numbers.items():
        assert jobs.finish(job) == "COMPLETED"
        log = jobs.log(f"{name}-{job}")
        assert "ctk: GPU gate: n1: stand-in GPU, not checked\n" in log, log
        assert ("ctk: GPU gate: n2: stand-in GPU, not checked\n" in log) == (name == "both")
        assert own_lines(log).count("the words\n") == len(re.findall("GPU gate", log))


def test_job_on_a_broken_node_fails_at_once_and_says_which_and_why(jobs: Jobs, drivers: Path, tiny_image: Path) -> None:
    two = ("--gpus", "2", "--nodes", "2", on("n1,n2"))
    jobs.write("two", *two, "--", "echo", "never")
    jobs.write("hang", "--gpus", "1", on("n3"), "--", "echo", "never")
    jobs.write("held", "--gpus", "1", on("n1"), "--env", "FAKE_CUDA_HANG=hnb", "--", "echo", "never")
    jobs.write("taken", "--gpus", "2", on("n1"), "--env", "FAKE_CONTEXT=0,46", "--", "echo", "never")
    jobs.write("emptied", "--gpus", "1", on("n1"), "--env", "CUDA_VISIBLE_DEVICES=", "--", "echo", "never")
    jobs.write("crash", "--gpus", "1", on("n4"), "--", "echo", "never")
    jobs.write("few", "--gpus", "2", on("n1"), "--env", "CUDA_VISIBLE_DEVICES=0,7", "--", "echo", "never")
    jobs.image = tiny_image
    jobs.write("no-python", *two, "--", "echo", "never")
    reasons = {
        "two": "n2: cuInit returned 803: libcuda and the kernel module have different versions [driver-mismatch]. ",
        "hang": "n3: the driver did not answer within",
        "held": "n1: the driver did not answer within 3 s: cuInit did not return [driver-hangs]. Submit again",
        "taken": "n1: GPU 1: a program cannot begin to use it: cuDevicePrimaryCtxRetain returned 46: another process",
        "emptied": "n1: the driver shows no GPU; in the container, CUDA_VISIBLE_DEVICES is empty [no-visible-device]. ",
        "crash": "n4: the driver ended the program that asked it, by signal 11",
        "few": "n1: the driver shows 1 of the 2 GPUs in CUDA_VISIBLE_DEVICES [no-visible-device]. ",
        "no-python": "n2: nvidia-smi failed: Failed to initialize NVML: Driver/library version mismatch",
    }
    for name, reason in reasons.items():
        began = time.monotonic()
        job = jobs.submit(name, "--export=ALL,CTK_GATE_CALL_LIMIT=3")
        assert jobs.finish(job) == "FAILED"
        assert time.monotonic() - began < 20, name
        assert jobs.show(job, "ExitCode") == "1:0"
        log = jobs.log(f"{name}-{job}")
        assert f"ctk: GPU gate: {reason}" in log, log
        assert "never" not in log
        assert "the program was not started" in log
        assert re.search(r"^ctk: .* ended with status 1$", log, re.MULTILINE), log
        if name in ("two", "no-python"):
            assert "ctk: GPU gate: n1: " in log
            assert "sbatch --exclude=n2" in log


def test_uneven_gpus_are_those_that_slurm_gave_each_node(jobs: Jobs, drivers: Path) -> None:
    """Three GPUs on two nodes, GPUs for each task, and for each node: no node has to have more than it was given."""
    compile_driver(drivers / "n2")
    program = (on("n1,n2"), "--", "sh", "-c", "echo the program has run")
    jobs.write("uneven", "--gpus", "3", "--nodes", "2", *program)
    jobs.write("tasks", "--nodes", "2", "--ntasks-per-node", "2", "--directive=--gpus-per-task=1", *program)
    jobs.write("each", "--nodes", "2", "--directive=--gres=gpu:1", *program)
    expected = {"uneven": [1, 2], "tasks": [2, 2], "each": [1, 1]}
    numbers = {name: jobs.submit(name) for name in expected}
    for name, job in numbers.items():
        state, log = jobs.finish(job), jobs.log(f"{name}-{job}")
        assert state == "COMPLETED", log
        usable = sorted(map(int, re.findall(r"GPU gate: n[12]: usable GPUs: (\d)$", log, re.MULTILINE)))
        assert usable == expected[name], log


def test_node_that_ignores_layers_ends_its_job_before_the_program(
    jobs: Jobs, drivers: Path, lab: PracticeCluster, layered_image: Path
) -> None:
    """The gate says so before it says that the driver of that node is broken; without a gate, the container does."""
    settings = Path("/etc/apptainer/apptainer.conf").read_text().replace("enable overlay = yes", "enable overlay = no")
    (drivers / "apptainer.conf").write_text(settings)
    runtime = Path(lab.environment["SLURM_CONF"]).parent / "bin" / "apptainer"
    runtime.write_text(IGNORING.format(real=shutil.which("apptainer"), directory=drivers))
    runtime.chmod(0o755)
    try:
        jobs.image = layered_image
        for name, gpus in (("gated", "2"), ("cpu", "0")):
            jobs.write(
                name, "--gpus", gpus, "--nodes", "2", "--ntasks-per-node", "1", on("n1,n2"), "--", "touch", "ran"
            )
            job = jobs.submit(name)
            assert jobs.finish(job) == "FAILED"
            assert jobs.show(job, "ExitCode") == "3:0"
            log = jobs.log(f"{name}-{job}")
            assert f"{LOWER} of " in log, log
            assert log.count("[layer-not-mounted]") == 1, log
            assert ("ctk: GPU gate: n2: " in log) == (name == "gated")
            assert (jobs.directory / "ran").exists() == (name == "cpu"), "n1 mounts them"
    finally:
        runtime.unlink()


def test_framework_that_computes_on_the_cpu_ends_its_job(
    jobs: Jobs, drivers: Path, ground: Path, python_sandbox: Path
) -> None:
    torch = small_torch(python_sandbox, ground / "gate-torch", "9.1.0.70")
    numbers = {}
    for behaviour in ("honest", "lying"):
        jobs.image = behaving(behaviour, torch, ground / "gate")
        asked = ("--gpus", "2", on("n1"), "--gate", "framework")
        jobs.write(behaviour, *asked, "--", "sh", "-c", "echo the program has run")
        numbers[behaviour] = jobs.submit(behaviour)
    ends = {behaviour: jobs.finish(job) for behaviour, job in numbers.items()}
    logs = {behaviour: jobs.log(f"{behaviour}-{job}") for behaviour, job in numbers.items()}
    assert ends == {"honest": "COMPLETED", "lying": "FAILED"}, logs
    assert "the program has run" in logs["honest"]
    assert "the program has run" not in logs["lying"]
    assert re.search(r"GPU gate: n1: .*\[result-not-on-gpu\]", logs["lying"]), logs


PROGRAM = """
import os, signal, sys, time
def caught(number, frame):
    name = signal.Signals(number).name
    os.write(1, f"got {name}\\n".encode())  # at once: two ranks share the log
    if name == sys.argv[1]:
        time.sleep(1)
        sys.exit(7)
for name in ("TERM", "USR1"):
    signal.signal(getattr(signal, "SIG" + name), caught)
names = ("CUDA_VISIBLE_DEVICES", "SLURM_PROCID", "PYTHONNOUSERSITE", "OLDPWD")
print(os.getcwd(), os.umask(0o22), {name: os.environ.get(name) for name in names})
print(sorted(os.listdir("/proc/self/fd")), repr(sys.stdin.read()), sorted(os.listdir(".")))
print([line for line in open("/proc/self/status") if line[:6] in ("SigBlk", "SigIgn", "SigCgt")], file=sys.stderr)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def test_program_notices_nothing_of_the_gate(jobs: Jobs, drivers: Path) -> None:
    """Output, exit status, signals, input, working directory and environment are those without the gate."""
    (jobs.directory / "program.py").write_text(PROGRAM)
    where = (on("n1"), "--", "python3", "-u", "program.py")
    # Slurm ends a step whose tasks get SIGTERM before they are done.
    last = {"one": "TERM", "two": "USR1"}
    for name, resources in {"one": ("--gpus", "2"), "two": ("--gpus", "1", "--ntasks-per-node", "2")}.items():
        words = (*resources, *where, f"SIG{last[name]}")
        jobs.write(name, *words)
        jobs.write(name, "--output", f"{name}-without.sbatch", "--no-gpu-gate", *words)
    found = {}
    for script in ("one", "one-without", "two", "two-without"):
        job = jobs.submit(script)
        stem = f"{script[:3]}-{job}"
        ranks = 2 if script.startswith("two") else 1
        eventually(lambda stem=stem, ranks=ranks: jobs.log(stem).count("ready") == ranks, f"{script} to begin")  # type: ignore[misc]
        batch = ("--batch",) if ranks == 1 else ()
        jobs.run("scancel", *batch, "--signal=USR1", job)
        eventually(lambda stem=stem: "got SIGUSR1" in jobs.log(stem), f"{script} to be warned")  # type: ignore[misc]
        if ranks == 1:
            jobs.run("scancel", "--batch", "--signal=TERM", job)
        state = jobs.finish(job)
        log = jobs.log(stem)
        lines = own_lines(log).splitlines() if ranks == 1 else sorted(set(own_lines(log).splitlines()))
        found[script] = (state, jobs.show(job, "ExitCode"), lines, "SIGUSR1 at" in log)
        assert ("GPU gate: n1: usable GPUs: " in log) == (script in ("one", "two")), log
    assert found["one"] == found["one-without"]
    assert found["one"][1] == "7:0"
    assert found["two"] == found["two-without"]


def test_monitor_ends_the_log_with_the_use_of_each_gpu(jobs: Jobs, drivers: Path, tiny_image: Path) -> None:
    program = ("--", "sh", "-c", "sleep 4; exit 3")
    monitored = ("--gpu-monitor", on("n1"), "--env", "FAKE_NVML_BUSY=1")
    jobs.write("used", "--gpus", "2", *monitored, *program)
    jobs.image = tiny_image
    jobs.write("blind", "--gpus", "1", *monitored, *program)
    jobs.write("node", "--gpus", "1", *monitored, *program)
    library = f"--export=ALL,LD_LIBRARY_PATH={drivers}/n1"
    numbers = {"used": jobs.submit("used"), "blind": jobs.submit("blind"), "node": jobs.submit("node", library)}
    logs = {}
    for name, job in numbers.items():
        assert jobs.finish(job) == "FAILED"
        assert jobs.show(job, "ExitCode") == "3:0"
        logs[name] = jobs.log(f"{name}-{job}").partition("ended with status 3\n")[2]
    assert logs["used"].startswith(
        "ctk: GPU 0 on n1: utilisation 50 % mean, 50 % peak; memory 1.0 GiB mean, 1.0 GiB peak of 16.0 GiB; "
        "energy 2.0 Wh\n"
    ), logs
    assert "warning: GPUs that were idle on n1: 1 of 2: GPU 1 (utilisation 0 %, no process on it)." in logs["used"]
    assert "neither the node nor the image has a Python that can ask NVML" in logs["blind"]
    assert re.search(r"^ctk: GPU \d on n1: utilisation \d+ % mean", logs["node"], re.MULTILINE), logs


def processes(job: str) -> dict[int, str]:
    """The command lines of the processes that have the job's number in their environment."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get("SLURM_JOB_ID") == job and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = " ".join(process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_nothing_of_the_monitor_outlives_its_job(jobs: Jobs, drivers: Path) -> None:
    program = ("--gpu-monitor", on("n1"), "--", "sh", "-c", "echo $$ > number-$SLURM_JOB_NAME; exec sleep 600")

    def start(name: str) -> str:
        jobs.write(name, "--gpus", "1", *program)
        job = jobs.submit(name)
        eventually((jobs.directory / f"number-{name}").exists, f"{name} to begin")
        eventually(lambda: any("nvmlInit" in words for words in processes(job).values()), "its monitor to begin")
        return job

    numbers = {name: start(name) for name in ("cancelled", "killed")}
    jobs.run("scancel", numbers["cancelled"])
    time.sleep(1.5)  # for a first sample
    (pid,) = [pid for pid, words in processes(numbers["killed"]).items() if words == "sleep 600"]
    psutil.Process(pid).kill()
    assert jobs.finish(numbers["killed"]) == "FAILED"
    assert jobs.show(numbers["killed"], "ExitCode") == "137:0"
    log = jobs.log(f"killed-{numbers['killed']}")
    assert re.search(r"ended with status 137\nctk: GPU \d on n1: utilisation \d+ % mean", log), log
    numbers["script-killed"] = start("script-killed")
    jobs.run("scancel", "--batch", "--signal=KILL", numbers["script-killed"])
    for name, job in numbers.items():
        jobs.finish(job)
        eventually(lambda job=job: not processes(job), f"the processes of {name} to end", 15)  # type: ignore[misc]
