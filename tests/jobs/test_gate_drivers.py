"""The gate of whole job scripts over stand-in drivers: each row of the table, on each scheduler.

No healthy job is stopped, and no job starts with fewer GPUs than it asked for. The runtime is a stand-in, too: what it
would run in the container runs here, with the libraries of the driver and this machine's Python.
"""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.driver import compile_driver
from tests.jobs.adversary import VARIABLES_OF
from tests.tokens import without_token
from toolkit.jobs.dialects.known import DIALECTS
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import GateCheck, Job
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.values import Gpus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.programs
SLURM = Scheduler.SLURM
SCHEDULERS = (SLURM, Scheduler.GRID_ENGINE, Scheduler.OPENPBS)
RUNTIME = """#!/bin/bash
[[ $1 != buildcfg ]] || exit 1
until [[ $1 == */trial.sif ]]; do shift; done
shift
node=${SLURMD_NODENAME:-$HOSTNAME}
[[ $1 != program ]] || exec echo "the program"
[ ! -f "$PLACE/$node" ] || . "$PLACE/$node"
sleep "${FAKE_START:-0}"
LD_LIBRARY_PATH=$DRIVER exec "$@"
"""
# Starts the command on two nodes at once, as srun and mpirun do.
STARTER = """#!/bin/bash
[[ $1 != --version ]] || exit
[[ ${*: -1} != program ]] || exec echo "the program"
until [[ $1 == bash ]]; do shift; done
for node in n1 n2; do
    SLURMD_NODENAME=$node HOSTNAME=$node SLURM_GPUS_ON_NODE=$(cat "$PLACE/given-$node" 2>/dev/null) "$@" &
    started+=($!)
done
status=0
for process in "${started[@]}"; do wait "$process" || status=$?; done
exit "$status"
"""


@dataclass(frozen=True)
class Row:
    """A job that asks for `gpus` on a node that has `there`, and what the gate says of it: `words`.

    `visible` is CUDA_VISIBLE_DEVICES. `touched` are the GPUs that it may have begun to use.
    """

    gpus: int
    there: int
    visible: str | None
    words: str
    starts: bool = True
    touched: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


HELD = {"FAKE_COMPUTE_MODE": "3,3,3,0", "FAKE_PROCESSES": "1,1,1,0", "FAKE_CONTEXT": "46,46,46,0"}
FULL = {"FAKE_FREE_MIB": "100,16000", "FAKE_CONTEXT": "2,0"}
BUSY = {"FAKE_PROCESSES": "1,0,0,0"}
MIG = "MIG-f0000000-0000-0000-0000-000000000000,MIG-f1000000-0000-0000-0000-000000000000"
ONE_SEEN = {"FAKE_MIG": "1", "FAKE_MIG_SEEN": "1"}
ROWS = {
    **{
        f"{number}-gpus": Row(number, 8, ",".join(map(str, range(number))), f"usable GPUs: {number}$")
        for number in (1, 2, 4, 8)
    },
    "three-of-four": Row(3, 4, None, "usable GPUs: 3$", touched="012"),
    # The request
    "names-too-few": Row(8, 8, "0,1,2,3", r"VISIBLE_DEVICES names 4 of the 8 GPUs .*\[too-few-gpus\]", starts=False),
    "shows-too-few": Row(8, 4, None, r"the driver shows 4 of the 8 GPUs that the job .*\[too-few-gpus\]", starts=False),
    "one-is-gone": Row(4, 3, "0,1,2,3", r"the driver shows 3 of the 4 GPUs in CUDA_VISIBLE_DEVICES \[", starts=False),
    "more-than-asked": Row(1, 2, "0,1", r"warning: usable GPUs: 1; GPU 1 cannot be used \(error 46\)$",
                           settings={"FAKE_CONTEXT": "0,46"}),
    # Time
    "slow-start": Row(1, 1, "0", "usable GPUs: 1$", settings={"FAKE_START": "2", "CTK_GATE_CALL_LIMIT": "1"}),
    "slow-contexts": Row(8, 8, "0,1,2,3,4,5,6,7", "usable GPUs: 8$",
                         settings={"FAKE_CONTEXT_MS": "400,400,400,400,400,400,400,400", "CTK_GATE_CALL_LIMIT": "2"}),
    "slow-init-of-all": Row(8, 8, "0,1,2,3,4,5,6,7", "usable GPUs: 8$",
                            settings={"FAKE_INIT_MS": "1500", "CTK_GATE_CALL_LIMIT": "1"}),
    "no-start": Row(1, 1, "0", r"the container did not start within 1 s \[container-starts-slowly\]. This is no",
                    starts=False, settings={"FAKE_START": "60", "CTK_GATE_START_LIMIT": "1"}),
    "init-hangs": Row(1, 1, "0", r"did not answer within 1 s: cuInit did not return \[driver-hangs\]. Submit again",
                      starts=False, settings={"FAKE_INIT_MS": "60000", "CTK_GATE_CALL_LIMIT": "1"}),
    "context-hangs": Row(2, 2, "0,1", r"within 1 s: cuDevicePrimaryCtxRetain of GPU 1 did not return \[driver-hangs\]",
                         starts=False, settings={"FAKE_CONTEXT_MS": "0,60000", "CTK_GATE_CALL_LIMIT": "1"}),
    # GPUs that others use
    "held": Row(1, 4, None, "usable GPUs: 1$", touched="3", settings=HELD),
    "held-without-nvml": Row(1, 4, None, "usable GPUs: 1$", settings={**HELD, "FAKE_NVML_INIT": "9"}),
    "full": Row(1, 4, None, "usable GPUs: 1$", touched="1", settings=FULL),
    "busy": Row(2, 4, None, "usable GPUs: 2$", touched="12", settings=BUSY),
    "too-many-held": Row(2, 4, None, r"GPU 0: .*; usable GPUs: 1 of the 2 that .*\[device-unavailable\]", starts=False,
                         settings=HELD),
    "full-for-all": Row(4, 4, None, r"GPU 0: .*its memory is full; .*\[gpu-memory-full\]", starts=False, settings=FULL),
    "held-by-another": Row(1, 4, "3", "usable GPUs: 1$", touched="3", settings=HELD),
    "own-is-held": Row(1, 4, "0", r"GPU 0: .*\[device-unavailable\]", starts=False, settings=HELD),
    # The list
    "minus-one-ends": Row(1, 4, "0,-1,2", "usable GPUs: 1$", touched="0"),
    "minus-one-hides": Row(2, 4, "0,-1,2", r"CUDA_VISIBLE_DEVICES names 1 of the 2 GPUs .*\[too-few", starts=False),
    "minus-one": Row(1, 4, "-1", r"CUDA_VISIBLE_DEVICES is -1 \[no-visible-device\]", starts=False),
    "empty": Row(1, 4, "", r"CUDA_VISIBLE_DEVICES is empty \[no-visible-device\]", starts=False),
    "no-dev-files": Row(1, 4, "NoDevFiles", r"CUDA_VISIBLE_DEVICES is NoDevFiles \[no-vis", starts=False),
    "uuid-prefix": Row(1, 4, "GPU-a2", "usable GPUs: 1$", touched="2"),
    "uuids": Row(2, 4, "GPU-a3,GPU-a1", "usable GPUs: 2$", touched="31"),
    "mig": Row(2, 2, MIG, "usable GPUs: 2$", touched="01", settings=ONE_SEEN),
    "mig-one-bad": Row(2, 2, MIG, r"GPU 1: .*returned 999.*\[gpu-failed\]", starts=False,
                       settings={**ONE_SEEN, "FAKE_CONTEXT": "0,999"}),
    "mig-of-nobody": Row(2, 1, None, "usable GPUs: 1, a MIG device: CUDA shows a process one of them",
                         settings={"FAKE_MIG": "1"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


class Place:
    """The directory of a job, with the stand-ins for the runtime, srun and mpirun."""

    def __init__(self, directory: Path, driver: Path) -> None:
        self.directory, self.driver = directory, driver
        self.trace = directory / "trace"
        (directory / "bin").mkdir(parents=True)
        for name, text in (("apptainer", RUNTIME), ("srun", STARTER), ("mpirun", STARTER)):
            path = directory / "bin" / name
            path.write_text(text)
            path.chmod(0o755)
        (directory / "trial.sif").touch()

    def run(self, scheduler: Scheduler, job: Job, there: int, visible: str | None, **more: str) -> tuple[int, str]:
        """The exit status and the log of a job."""
        script = self.directory / "x.script"
        script.write_text(script_text(job, DIALECTS[scheduler], ""))
        environment = {
            "PATH": f"{self.directory / 'bin'}:/usr/bin:/bin",
            **VARIABLES_OF[scheduler](job.name, str(self.directory)),
            "HOSTNAME": "n1",
            "PLACE": str(self.directory),
            "DRIVER": str(self.driver),
            "FAKE_CUDA_COUNT": str(there),
            "FAKE_TRACE": str(self.trace),
            **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}),
            **more,
        }
        if scheduler is SLURM:
            environment |= {"SLURMD_NODENAME": "n1", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_GPUS": str(job.gpus)}
            environment |= {"SLURM_GPUS_ON_NODE": str(job.gpus)} if job.nodes is None else {"SLURM_JOB_NUM_NODES": "2"}
        log = self.directory / "x-7.log"
        with log.open("w") as file:
            done = subprocess.run(
                ["bash", script], cwd=self.directory, env=environment, stdout=file, stderr=file, check=False, timeout=50
            )
        return done.returncode, without_token((self.directory / "logs/x-7.log").read_text())


@pytest.fixture
def place(tmp_path: Path, driver: Path) -> Place:
    return Place(tmp_path, driver)


def job_of(gpus: int, **more: object) -> Job:
    return Job("x", "./trial.sif", ("program",), gpus=Gpus(gpus), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ROWS)
def test_gate_says_what_is_right(tmp_path: Path, driver: Path, name: str) -> None:
    row = ROWS[name]

    def check(scheduler: Scheduler) -> None:
        place = Place(tmp_path / scheduler.name, driver)
        status, log = place.run(scheduler, job_of(row.gpus), row.there, row.visible, **row.settings)
        assert (status == 0) == row.starts, log
        assert log.count("\nthe program\n") == row.starts, log
        assert re.search(rf"^ctk: GPU gate: n1: .*{row.words}", log, re.MULTILINE), log
        if row.touched is not None:
            assert place.trace.read_text().split() == list(row.touched)

    with ThreadPoolExecutor() as pool:
        list(pool.map(check, SCHEDULERS))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_gate_names_the_bad_one_of_two_nodes(place: Place, scheduler: Scheduler) -> None:
    own = RequestTemplates(resources=RequestTemplate("-l node_f={nodes}"))
    job = job_of(4, nodes=2, **({"requests": own} if scheduler is Scheduler.GRID_ENGINE else {}))
    hosts = place.directory / "hosts"
    both = {"PE_HOSTFILE": str(hosts), "PBS_NODEFILE": str(hosts)}
    hosts.write_text("n1\nn2\n")
    for node in ("n1", "n2"):
        (place.directory / f"given-{node}").write_text("2")
    status, log = place.run(scheduler, job, 2, "0,1", **both)
    assert status == 0, log
    assert len(re.findall(r"^ctk: GPU gate: n[12]: usable GPUs: 2$", log, re.MULTILINE)) == 2, log
    (place.directory / "n2").write_text("export FAKE_CUDA_INIT=803\n")
    status, log = place.run(scheduler, job, 2, "0,1", **both)
    assert status == 1
    assert "ctk: GPU gate: n1: usable GPUs: 2\n" in log
    assert re.search(r"^ctk: GPU gate: n2: cuInit returned 803: .* \[driver-mismatch\]", log, re.MULTILINE), log
    assert "the program\n" not in log
    (place.directory / "n2").write_text("export CUDA_VISIBLE_DEVICES=0\n")
    status, log = place.run(scheduler, job, 2, "0,1", **both)
    assert status == 1
    assert re.search(r"^ctk: GPU gate: n2: CUDA_VISIBLE_DEVICES names 1 of the 2 GPUs .*\[too-few", log, re.M), log


def test_gate_compares_with_what_slurm_gave_each_node_and_with_the_sum(place: Place) -> None:
    job = job_of(4, nodes=2)
    for node, given in (("n1", "3"), ("n2", "1")):
        (place.directory / f"given-{node}").write_text(given)
        (place.directory / node).write_text(f"export CUDA_VISIBLE_DEVICES={'0,1,2' if given == '3' else '0'}\n")
    status, log = place.run(SLURM, job, 4, None)
    assert status == 0, log
    assert "ctk: GPU gate: n1: usable GPUs: 3\n" in log
    assert "ctk: GPU gate: n2: usable GPUs: 1\n" in log
    (place.directory / "given-n1").write_text("2")
    (place.directory / "n1").write_text("export CUDA_VISIBLE_DEVICES=0,1\n")
    status, log = place.run(SLURM, job, 4, None)
    assert status == 1
    assert "n[1-2]: usable GPUs: 3 of the 4 that the job asked for [too-few-gpus]. " in log


def test_gate_of_several_units_on_one_host_asks_it_once_for_all(place: Place) -> None:
    """Two units of two GPUs: the host has to have four, and no GPU is used by two processes at once."""
    own = RequestTemplates(resources=RequestTemplate("-l node_q={nodes}"))
    (place.directory / "hosts").write_text("n1\n")
    (place.directory / "bin/mpirun").write_text(
        STARTER.replace("n1 n2", "0 1").replace("SLURMD_NODENAME=$node HOSTNAME", "OMPI_COMM_WORLD_LOCAL_RANK")
    )
    words = {"PE_HOSTFILE": str(place.directory / "hosts")}
    job = job_of(4, nodes=2, requests=own)
    status, log = place.run(Scheduler.GRID_ENGINE, job, 8, None, **words)
    assert status == 0, log
    assert log.count("ctk: GPU gate: n1: usable GPUs: 4\n") == 1, log
    assert sorted(place.trace.read_text().split()) == list("0123")
    status, log = place.run(Scheduler.GRID_ENGINE, job, 3, None, **words)
    assert status == 1, log


# What `qstat -f` says of a job, as OpenPBS 23.06 breaks the line, and what the gate says of the two nodes.
PLACED = {
    "unequal": ("n1/0+n2/0*2", "(n1:ncpus=1:ngpus=2)+(n2:ncpus=\n\t2:ngpus=1)", ("usable GPUs: 2", "usable GPUs: 1")),
    "without-gpu": ("n1/0+n2/0", "(n1:ncpus=1)+(n2:ncpus=1:ngpus=1)", ("not checked: OpenPBS", "usable GPUs: 1")),
    "several-chunks": (
        "n1.site/1+n1.site/2*0+n2.site/3*0",
        "(n1:ncpus=1:ngpus=1)+(n1:ngpus=1)+(n2[0]:ngpus=1:ncpus=4+n2[1]:ngpus=1:ncpus=2)",
        ("usable GPUs: 2", "the driver shows 1 of the 2 GPUs"),
    ),
    "silent": ("", "", ("usable GPUs: 2", "the driver shows 1 of the 2 GPUs")),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACED)
def test_gate_compares_with_the_chunks_of_each_node(place: Place, name: str) -> None:
    hosts, chunks, words = PLACED[name]
    qstat = place.directory / "bin/qstat"
    shown = f"Job Id: 7.pbs1\n    exec_host = {hosts}\n    exec_vnode = {chunks}\n"
    qstat.write_text(f"#!/bin/sh\ncat <<'END'\n{shown}END\n")
    qstat.chmod(0o755)
    (place.directory / "hosts").write_text("n1\nn2\n")
    (place.directory / "n2").write_text("export FAKE_CUDA_COUNT=1\n")
    # The script asks for two on each node: qsub had another request, or the line was changed by hand.
    job, nodes = job_of(4, nodes=2), str(place.directory / "hosts")
    status, log = place.run(Scheduler.OPENPBS, job, 2, None, PBS_NODEFILE=nodes)
    assert (status == 0) == (name in ("unequal", "without-gpu")), log
    for node, said in zip(("n1", "n2"), words, strict=True):
        assert re.search(rf"^ctk: GPU gate: {node}: .*{said}", log, re.MULTILINE), log


def test_gate_has_the_framework_compute_only_on_the_gpus_that_it_chose(place: Place) -> None:
    text = "import sys\nprint('ctk-gate: computed 1 on', sys.argv[1])"
    check = GateCheck("Name", text, "python3")
    status, log = place.run(Scheduler.GRID_ENGINE, job_of(1, gate_check=check), 4, None, **HELD)
    assert status == 0, log
    assert "ctk: GPU gate: n1: usable GPUs: 1; on 3\n" in log


@pytest.mark.parametrize(
    ("variables", "words", "starts"),
    [
        ({"CTK_GATE_GPUS": "2"}, r"the driver shows 1 of the 2 GPUs .*\[too-few-gpus\]", False),
        (dict.fromkeys(("CTK_GATE_GPUS", "CTK_GATE_CALL_LIMIT"), "x[$(touch planted)]"), "usable GPUs: 1$", True),
        ({"SLURM_GPUS_ON_NODE": "", "SLURM_GPUS": "x[$(touch planted)]"}, "usable GPUs: 1$", True),
    ],
)
def test_gate_reads_its_variables_as_numbers(place: Place, variables: dict[str, str], words: str, starts: bool) -> None:
    status, log = place.run(SLURM, job_of(1), 1, None, **variables)
    assert (status == 0) == starts, log
    assert re.search(rf"^ctk: GPU gate: n1: .*{words}", log, re.MULTILINE), log
    assert not (place.directory / "planted").exists()
