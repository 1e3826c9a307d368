"""What the scripts for Grid Engine and PBS really do, run by bash with the variables of their scheduler."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.jobs.adversary import VARIABLES_OF
from toolkit.jobs.dialects.known import DIALECTS
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Job
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.values import parse_array

pytestmark = pytest.mark.slow

JOB = Job("x", "./trial.sif", ("program", "word"))
SGE, PBS, TORQUE = Scheduler.GRID_ENGINE, Scheduler.OPENPBS, Scheduler.TORQUE
EACH = pytest.mark.parametrize("scheduler", [SGE, PBS, TORQUE])
EACH_PBS = pytest.mark.parametrize("scheduler", [PBS, TORQUE])


@dataclass(frozen=True, slots=True)
class Run:
    """How a script ended, and what was printed where the scheduler collects it."""

    status: int
    spool: str


class Ground:
    """A directory with an image and a runtime that prints what it was told; jobs run there as job 7."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "bin").mkdir()
        (directory / "spool").mkdir()
        self.program("apptainer", "echo ran $*; exit 7")
        (directory / "trial.sif").touch()

    def program(self, name: str, body: str) -> None:
        path = self.directory / "bin" / name
        path.write_text(f'#!/bin/sh\n[ "$1" != buildcfg ] || exit 1\n{body}\n')
        path.chmod(0o755)

    def log(self, name: str = "x-7") -> str:
        return (self.directory / "logs" / f"{name}.log").read_text()

    def start(self, scheduler: Scheduler, job: Job = JOB, **more: str) -> subprocess.Popen[str]:
        """Start the script; its output goes where the scheduler opens it: the submit directory, or a spool."""
        script = self.directory / "x.script"
        script.write_text(script_text(job, DIALECTS[scheduler], ""))
        environment = {
            "PATH": f"{self.directory / 'bin'}:/usr/bin:/bin",
            **VARIABLES_OF[scheduler](job.name, str(self.directory)),
            **more,
        }
        sge = scheduler is SGE
        task = f"_{more['SGE_TASK_ID']}" if "SGE_TASK_ID" in more else ""
        log = self.directory / f"x-7{task}.log" if sge else self.directory / "spool" / "7.OU"
        with log.open("a") as file:
            return subprocess.Popen(
                ["bash", str(script)],
                cwd=self.directory if sge else "/",
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                text=True,
            )

    def run(self, scheduler: Scheduler, job: Job = JOB, **more: str) -> Run:
        status = self.start(scheduler, job, **more).wait(30)
        spool = self.directory / "spool" / "7.OU"
        return Run(status, spool.read_text() if spool.exists() else "")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@EACH
def test_log_is_in_logs_and_the_status_is_that_of_the_program(ground: Ground, scheduler: Scheduler) -> None:
    assert ground.run(scheduler).status == 7
    text = ground.log()
    assert text.startswith("ctk: job 7 of ")
    assert "ran --quiet exec ./trial.sif program word" in text
    assert "ended with status 7" in text
    assert [path.name for path in ground.directory.glob("*.log")] == []
    assert (ground.directory / "logs/x-7.log").stat().st_nlink == 1


@EACH_PBS
def test_pbs_gets_the_name_of_the_log_and_the_log_that_of_the_rest(ground: Ground, scheduler: Scheduler) -> None:
    spool = ground.run(scheduler).spool
    assert spool == f"ctk: the log of this job is logs/x-7.log in {ground.directory}\n"
    assert "what PBS itself says comes to x.o7 when the job has ended" in ground.log()


@pytest.mark.parametrize(
    ("scheduler", "more", "rest"),
    [
        (SGE, {"SGE_TASK_ID": "3"}, ""),
        (PBS, {"PBS_JOBID": "7[3].pbs1", "PBS_ARRAY_INDEX": "3"}, "x.o7.3"),
        (TORQUE, {"PBS_JOBID": "7[3].pbs1", "PBS_ARRAYID": "3"}, "x.o7-3"),
        (TORQUE, {"PBS_JOBID": "7-3.pbs1", "PBS_ARRAYID": "3"}, "x.o7-3"),
    ],
)
def test_task_of_an_array_has_its_own_log(
    ground: Ground, scheduler: Scheduler, more: dict[str, str], rest: str
) -> None:
    job = replace(JOB, array=parse_array("3-4"))
    assert ground.run(scheduler, job, **more).status == 7
    assert f"comes to {rest} when" in ground.log("x-7_3") if rest else ground.log("x-7_3")
    assert job.first_log("7[].pbs1") == "logs/x-7_3.log"


@EACH_PBS
def test_missing_working_directory_is_said_where_pbs_collects_it(ground: Ground, scheduler: Scheduler) -> None:
    run = ground.run(scheduler, PBS_O_WORKDIR="/nonexistent/x")
    assert run.status == 1
    assert "should run in /nonexistent/x" in run.spool
    assert "ran" not in run.spool


@EACH
@pytest.mark.parametrize("sort", ["link", "second name"])
def test_log_whose_name_was_taken_is_written_elsewhere(ground: Ground, scheduler: Scheduler, sort: str) -> None:
    profile = ground.directory / "profile"
    profile.write_text("mine\n")
    log = ground.directory / "x-7.log"
    log.symlink_to(profile) if sort == "link" else log.hardlink_to(profile)
    assert ground.run(scheduler).status == 7
    assert profile.read_text() == "mine\n"
    (found,) = ground.directory.glob("logs/x-7-*.log")
    assert "the log's name was taken" in found.read_text()
    assert "exec ./trial.sif program word" in found.read_text()


@EACH
def test_what_another_job_left_in_logs_is_kept_aside(ground: Ground, scheduler: Scheduler) -> None:
    (ground.directory / "logs").mkdir()
    (ground.directory / "secret").write_text("private")
    (ground.directory / "logs/x-7.log").symlink_to(ground.directory / "secret")
    assert ground.run(scheduler).status == 7
    assert "private" not in ground.log()
    assert (ground.directory / "secret").read_text() == "private"
    assert (ground.directory / "logs/x-7.log.~1~").is_symlink()


@pytest.mark.parametrize(
    ("scheduler", "more", "answer"),
    [
        (SGE, {"RESTARTED": "1"}, ""),
        (PBS, {}, "Job Id: 7.pbs1\n    run_count = 2"),
        (TORQUE, {}, "Job Id: 7.pbs1\n    start_count = 2"),
    ],
)
def test_restart_follows_the_first_run_in_the_log(
    ground: Ground, scheduler: Scheduler, more: dict[str, str], answer: str
) -> None:
    ground.run(scheduler)
    ground.program("qstat", f"echo '{answer}'")
    ground.run(scheduler, **more)
    text = ground.log()
    assert text.index("run 1 on") < text.index("run 2 on")
    assert [path.name for path in ground.directory.glob("logs/*")] == ["x-7.log"]


@EACH
def test_where_logs_cannot_be_made_the_job_still_runs(ground: Ground, scheduler: Scheduler) -> None:
    (ground.directory / "logs").write_text("a file of the user's own")
    assert ground.run(scheduler).status == 7
    assert f"the log stays at {ground.directory}/x-7.log" in (ground.directory / "x-7.log").read_text()


@EACH
def test_signal_of_the_script_reaches_the_program(ground: Ground, scheduler: Scheduler) -> None:
    ground.program("apptainer", "trap 'echo saved; exit 3' USR1; echo begun; while :; do sleep 0.05; done")
    script = ground.start(scheduler)
    deadline = time.monotonic() + 20
    while not ((ground.directory / "logs/x-7.log").exists() and "begun" in ground.log()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    script.send_signal(signal.SIGUSR1)
    assert script.wait(20) == 3
    assert "SIGUSR1 at" in ground.log()
    assert "saved\n" in ground.log()


@EACH
@pytest.mark.parametrize("status", [0, 1, 99, 100, 137])
def test_status_that_is_an_order_to_grid_engine_becomes_one(ground: Ground, scheduler: Scheduler, status: int) -> None:
    ground.program("apptainer", f"exit {status}")
    ordered = scheduler is SGE and status in (99, 100)
    assert ground.run(scheduler).status == (1 if ordered else status)
    assert f"ended with status {status}\n" in ground.log()


@EACH
def test_results_and_temporary_directory(ground: Ground, scheduler: Scheduler) -> None:
    ground.program(
        "apptainer", 'echo "tmp $TMPDIR" "$(ls -d "$TMPDIR")" "omp $OMP_NUM_THREADS"; touch "$CTK_RESULTS/x"'
    )
    (ground.directory / "local").mkdir()
    job = replace(JOB, results=True, node_tmp=True, cpus_per_task=4)
    assert ground.run(scheduler, job, TMPDIR=str(ground.directory / "local")).status == 0
    assert (ground.directory / "results/x-7/x").exists()
    assert f"tmp {ground.directory}/local/ctk-tmp-{socket.gethostname()}-7-" in ground.log()
    assert "omp 4" in ground.log()
    assert list((ground.directory / "local").iterdir()) == []


def process(pid: int) -> str:
    """A process as the name of a directory of --node-tmp has it: PID namespace, PID and start."""
    start = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{Path('/proc/self/ns/pid').stat().st_ino}-{pid}-{start}"


@EACH
def test_a_directory_that_a_killed_job_left_is_removed_by_the_next(ground: Ground, scheduler: Scheduler) -> None:
    """Not one of a job or a program that runs, nor of another node or PID namespace, nor what a symlink leads to."""
    local, kept = ground.directory / "local", ground.directory / "kept"
    host = f"ctk-tmp-{socket.gethostname()}"
    gone = subprocess.Popen(["sleep", "60"])
    dead = process(gone.pid)
    gone.kill()
    gone.wait()
    namespace = dead.partition("-")[0]
    stay = [
        f"{host}-2-{process(os.getpid())}-run123",
        f"{host}-3-{dead}-used12",
        f"ctk-tmp-elsewhere-4-{dead}-abc123",
        f"{host}-5-1{dead}-abc123",
        f"{host}-images",
        f"{host}-7-{dead}-longer1",
    ]
    removed = [f"{host}-1-{dead}-abc123", f"{host}-1.n1-{namespace}-{os.getpid()}-1-reused"]
    for path in (kept, *(local / name for name in (*stay, *removed))):
        path.mkdir(parents=True)
        (path / "file").touch()
    (local / f"{host}-6-{dead}-linked").symlink_to(kept)
    ground.program("apptainer", "true")
    (ground.directory / "linked").symlink_to(local)
    using = subprocess.Popen(["sleep", "60"], env={**os.environ, "TMPDIR": str(local / stay[1])})
    try:
        for same in (local, f"{local}/", ground.directory / "linked"):
            assert ground.run(scheduler, replace(JOB, node_tmp=True), TMPDIR=str(same)).status == 0
    finally:
        using.kill()
        using.wait()
    assert {path.name for path in local.iterdir()} == {*stay, f"{host}-6-{dead}-linked"}
    assert (kept / "file").exists()


@EACH
def test_python_prints_at_once_unless_the_user_says_otherwise(ground: Ground, scheduler: Scheduler) -> None:
    ground.program("apptainer", 'echo "unbuffered ${PYTHONUNBUFFERED-unset}."')
    for given, seen in (({}, "1"), ({"PYTHONUNBUFFERED": ""}, ""), ({"PYTHONUNBUFFERED": "x"}, "x")):
        ground.run(scheduler, **given)
        assert ground.log().rpartition("unbuffered ")[2].startswith(f"{seen}.\n")
    inherits = replace(JOB, inherited=("PYTHONUNBUFFERED",))
    assert ground.run(scheduler, inherits).status == 2
    assert "PYTHONUNBUFFERED is not set in this job" in ground.log()


@EACH
def test_processes_are_started_by_mpirun_with_the_variables(ground: Ground, scheduler: Scheduler) -> None:
    ground.program("mpirun", 'if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4"; else echo "started $*"; fi')
    job = replace(JOB, tasks_per_node=2, cpus_per_task=3, inherited=("A",))
    nodes = ground.directory / "nodes"
    nodes.write_text("n1\nn1\n")
    assert ground.run(scheduler, job, A="1", PBS_NODEFILE=str(nodes)).status == 0
    line = ground.log().partition("\nstarted")[2].rpartition("\nctk")[0].replace("\n", " ")
    assert line.startswith(" -n 2 --map-by ppr:2:node --bind-to none -x ")
    assert " -x OMP_NUM_THREADS -x PYTHONUNBUFFERED -x A " in line
    assert (f"--hostfile {nodes} " in line) is (scheduler is not SGE)
    assert line.endswith("/apptainer --quiet exec ./trial.sif program word")


@EACH
@pytest.mark.parametrize(("lines", "each"), [("n1 1 q\nn1 1 r\n", 6), ("n1 1 q\nn2 1 q\n", 3), ("a\nb\nc\n", 2)])
def test_units_on_one_host_share_it(ground: Ground, scheduler: Scheduler, lines: str, each: int) -> None:
    """Open MPI refuses more processes than `ppr` allows on the hosts that there are."""
    ground.program("mpirun", 'if [ "$1" = --version ]; then echo "mpirun (Open MPI) 4.1.4"; else echo "started $*"; fi')
    job = replace(JOB, nodes=3, tasks_per_node=2)
    hosts = ground.directory / "hosts"
    hosts.write_text(lines if scheduler is SGE else "".join(f"{line.split()[0]}\n" for line in lines.splitlines()))
    assert ground.run(scheduler, job, PBS_NODEFILE=str(hosts), PE_HOSTFILE=str(hosts)).status == 0
    assert f"started -n 6 --map-by ppr:{each}:node" in ground.log()


@EACH
def test_missing_mpirun_is_named(ground: Ground, scheduler: Scheduler) -> None:
    for name in (
        "bash",
        "date",
        "mkdir",
        "ln",
        "rm",
        "stat",
        "cat",
        "head",
        "tail",
        "sed",
        "cut",
        "sort",
        "paste",
        "grep",
    ):
        source = next(path for path in (f"/usr/bin/{name}", f"/bin/{name}") if os.path.exists(path))  # noqa: PTH110
        (ground.directory / "bin" / name).symlink_to(source)
    run = ground.run(scheduler, replace(JOB, tasks_per_node=2), PATH=str(ground.directory / "bin"))
    assert run.status == 127
    assert "has no mpirun" in ground.log()


# A runtime as its `buildcfg` and configuration say it, whether it brings its own helpers, and whether a signal ends
# what it finds then. None: FUSE mounts nothing, so that nothing takes the place of a helper.
RUNTIMES = {
    "helpers-of-path": ("APPTAINER", 0, "", False, True),
    "own-helpers": ("APPTAINER", 0, "binary path = $PATH:/bin\n", True, True),
    "own-helpers-without-configuration": ("APPTAINER", 0, "# binary path =\n", True, True),
    "setuid": ("APPTAINER", 1, "# allow setuid-mount squashfs = iflimited\n", False, True),
    "setuid-and-own-helpers": ("APPTAINER", 1, "", True, False),
    "setuid-and-kernel": ("APPTAINER", 1, "allow setuid-mount squashfs = yes\n", True, None),
    "singularity-setuid": ("SINGULARITY", 1, "", True, None),
    "singularity-and-own-helpers": ("SINGULARITY", 0, "", True, False),
    "directory": ("APPTAINER", 0, "", False, None),
}


@pytest.mark.parametrize("name", RUNTIMES)
def test_signal_does_not_end_the_helpers_that_mount_the_image(ground: Ground, name: str) -> None:
    family, setuid, configuration, own, protected = RUNTIMES[name]
    libexec, image = ground.directory / "libexec", ground.directory / "trial.sif"
    helpers = libexec / family.lower() / "bin"
    helpers.mkdir(parents=True)
    (libexec / "conf").write_text(configuration)
    ground.program("squashfuse_ll", "kill -s TERM $$; echo mounted")
    if own:
        (ground.directory / "bin/squashfuse_ll").rename(helpers / "squashfuse_ll")
    if name == "directory":
        image.unlink()
        image.mkdir()
    # It looks where the real one does: what its configuration names before $PATH, its own directory, PATH.
    runtime = ground.directory / "bin/apptainer"
    runtime.write_text(
        f"""#!/bin/bash
conf={libexec}/conf
if [ "$1" = buildcfg ]; then
    printf '%s\\n' LIBEXECDIR={libexec} {family}_CONF_FILE=$conf {family}_SUID_INSTALL={setuid}
    exit
fi
first=$(sed -n 's/^binary path = \\(.*\\):$PATH:.*/\\1/p' "${{APPTAINER_CONFIG_FILE:-$conf}}")
PATH=$first:{helpers}:$PATH
type -P squashfuse_ll
squashfuse_ll
"""
    )
    runtime.chmod(0o755)
    # Two processes, each with a shell of its own, as on several nodes; the directory is theirs and of the next jobs.
    job = replace(JOB, tasks_per_node=2)
    ground.program("mpirun", 'while [ "$1" != bash ]; do shift || exit; done; "$@" & "$@"; wait')
    for scheduler, chosen, count in ((SGE, JOB, 1), (SGE, job, 2)):
        ground.run(scheduler, chosen, TMPDIR=str(ground.directory))
        log = ground.log()
        assert log.count("\nmounted") == (count if protected else 0), log
        assert log.count(f"{ground.directory}/ctk-fuse-") == (count if protected else 0), log
        assert ("may unmount the image while the program saves its work: this" in log) is (protected is False), log
        (ground.directory / "logs/x-7.log").unlink()
