"""The GPU gate with a stand-in for the runtime: what each answer from the container does to the job."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import overlay, system, write_sif
from tests.tokens import without_token
from toolkit.inventory.formats.layers import layers_of
from toolkit.jobs.gate import gate_lines
from toolkit.jobs.model import GateCheck
from toolkit.lab.configuration import CLUSTER_PREFIX
from toolkit.lab.tracking import MARK_VARIABLE
from toolkit.runtime.layer_check import FIX
from toolkit.support.explanations import explanations

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

GATE = gate_lines("./trial.sif", userns=False)
# A call of the driver, which hangs where nothing follows.
CALL = "echo ctk-stage: 12 call cuInit; "
QUICK = {"CTK_GATE_CALL_LIMIT": "1"}


def run(directory: Path, body: str, lines: str = GATE, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the gate; `body` is what the runtime does instead of starting the container."""
    (directory / "bin").mkdir(exist_ok=True)
    runtime = directory / "bin" / "apptainer"
    runtime.write_text(f"#!/bin/bash\n{body}\n")
    runtime.chmod(0o755)
    environment = {"PATH": f"{runtime.parent}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n7", **more}
    script = f"set -eu\n{lines}\necho the program\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=directory, env=environment, text=True, capture_output=True, check=False
    )
    done.stdout, done.stderr = without_token(done.stdout), without_token(done.stderr)
    return done


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("gpus 2", "usable GPUs: 2"),
        ("gpus 2 0,3", "usable GPUs: 2"),
        ("gpus 2 - 46 1", "warning: usable GPUs: 2; GPU 1 cannot be used (error 46)"),
        ("mig 1", "usable GPUs: 1, a MIG device: CUDA shows a process one of them"),
        ("visible 2", "visible GPUs: 2"),
        ("listed 4", "GPUs of nvidia-smi: 4; the image has no Python to ask libcuda"),
        ("files 1", "device files: 1; the image has no Python to ask libcuda"),
    ],
)
def test_gate_good_answer_starts_the_program(tmp_path: Path, answer: str, words: str) -> None:
    done = run(tmp_path, f"echo 'WARNING: noise' >&2; echo 'ctk-gate: {answer}'")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"ctk: GPU gate: n7: {words}\nthe program\n"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("cuda 34", "cuInit returned 34: the libcuda in the image is a stub, for linking only [stub-library]. Remove"),
        ("cuda 46", "cuInit returned 46: another process uses the GPU exclusively [device-unavailable]. Submit"),
        ("cuda 100 7", "no GPU; in the container, CUDA_VISIBLE_DEVICES is 7 [no-visible-device]. Ask the scheduler"),
        ("context 46 1", "GPU 1: a program cannot begin to use it: cuDevicePrimaryCtxRetain returned 46: another"),
        ("context 46 1", "off the bus [device-unavailable]. Submit again without this node (sbatch --exclude=n7)"),
        ("context 2 0", "its memory is full [gpu-memory-full]. "),
        ("context 214 0", "ECC cannot correct [ecc-error]. "),
        (
            "context 999 3",
            "GPU 3: a program cannot begin to use it: cuDevicePrimaryCtxRetain returned 999 [gpu-failed]",
        ),
        ("cuda 304 7", "cuInit returned 304 [cuda-init-failed]. Submit again without this node (sbatch --exclude=n7)"),
        ("cuda 802", "the fabric manager of the node is not running [system-not-ready]. "),
        ("cuda 803", "libcuda and the kernel module have different versions [driver-mismatch]. Remove"),
        ("cuda 804", "the CUDA compat library of the image does not serve this GPU [compat-not-supported]. Remove"),
        ("cuda 999", "cuInit returned 999; most often /dev/nvidia-uvm is missing [unknown-driver-error]. "),
        ("few 1 2 2", "the driver shows 1 of the 2 GPUs in CUDA_VISIBLE_DEVICES [no-visible-device]. "),
        ("few 1 2 1", "CUDA_VISIBLE_DEVICES names 1 of the 2 GPUs that the job needs here [too-few-gpus]. "),
        ("few 1 2 -", "the driver shows 1 of the 2 GPUs that the job needs here [too-few-gpus]. "),
        ("context 46 1 1 2", "off the bus; usable GPUs: 1 of the 2 that the job needs here [device-unavailable]. "),
        ("unlisted No devices", "nvidia-smi failed: No devices [cuda-init-failed]. "),
        ("load x: version `GLIBC_2.34' not found", "the C library of the image is too old for the driver: x: "),
        ("load libcuda.so.1: no", "the container has no NVIDIA driver: libcuda.so.1: no [driver-not-bound]. "),
        ("files 0", "the node has no device file /dev/nvidia0 [no-visible-device]. "),
        ("crashed 139", "the driver ended the program that asked it, by signal 11 ["),
    ],
)
def test_gate_bad_answer_ends_the_script_with_the_reason(tmp_path: Path, answer: str, words: str) -> None:
    done = run(tmp_path, f"cat <<'END'\nctk-gate: {answer}\nEND", CUDA_VISIBLE_DEVICES="7")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("ctk: GPU gate: n7: ")
    assert words in done.stderr


@pytest.mark.parametrize("word", ["crashed", "computed", "gpus", "files", "none", "context", "cuda", "few", "x"])
def test_gate_evaluates_no_answer_of_the_image(tmp_path: Path, word: str) -> None:
    planted = tmp_path / "planted"
    body = f"cat <<'END'\nctk-gate: {word} x[$(touch {planted})] `touch {planted}` \033[2J\x1b]0;t\x07\nEND"
    for script in (GATE, FRAMEWORK):
        done = run(tmp_path, body, script)
        assert not planted.exists()
        assert "\x1b" not in done.stdout + done.stderr
    assert word != "crashed" or "cannot be read: crashed x[$(" in done.stderr


def test_gate_image_that_prints_much_is_answered_in_constant_memory(tmp_path: Path) -> None:
    done = run(tmp_path, "head -c 50000000 /dev/zero | tr '\\0' x; echo; echo ctk-gate: gpus 1")
    assert done.stdout == "ctk: GPU gate: n7: usable GPUs: 1\nthe program\n"
    done = run(tmp_path, "head -c 50000000 /dev/zero | tr '\\0' x; exit 3")
    assert len(done.stderr) < 5000


def test_gate_image_that_prints_after_its_answer_has_answered(tmp_path: Path) -> None:
    done = run(tmp_path, "echo ctk-gate: cuda 803; head -c 10000 /dev/zero | tr '\\0' x")
    assert (done.returncode, done.stdout) == (1, "")
    assert "n7: cuInit returned 803" in done.stderr


def test_gate_image_that_prints_without_end_fills_no_disk(tmp_path: Path) -> None:
    """And the runtime may write files that are larger than what an image may print: it may have to unpack the image."""
    limit = "1073741824"
    assert GATE.count(limit) == 1
    done = run(tmp_path, "exec 2>&1; yes", GATE.replace(limit, "100000"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "[container-did-not-start]" in done.stderr
    done = run(tmp_path, "truncate -s 1200M unpacked || exit; echo ctk-gate: gpus 1")
    assert done.stdout.endswith("the program\n"), done.stderr


def test_gate_writes_where_there_is_room(tmp_path: Path) -> None:
    """On a full file system a file can be made, but not written: /dev/full is such a file."""
    mktemp = tmp_path / "bin/mktemp"
    mktemp.parent.mkdir()
    made = '[ "$2" = "${2#/dev/shm/}" ] || { ln -s /dev/full full; echo full; exit; }'
    mktemp.write_text(f'#!/bin/sh\n{made}\nexec /usr/bin/mktemp "$@"\n')
    mktemp.chmod(0o755)
    done = run(tmp_path, "echo ctk-gate: gpus 1")
    assert (done.returncode, done.stdout) == (0, "ctk: GPU gate: n7: usable GPUs: 1\nthe program\n"), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_gate_does_not_count_the_seconds_of_a_suspended_job(tmp_path: Path) -> None:
    """As schedulers do it: the processes of the script's session are stopped, those in other process groups too."""
    body = "touch began; for turn in {1..12}; do sleep 0.1; done; echo ctk-gate: gpus 1"
    (tmp_path / "apptainer").write_text(f"#!/bin/bash\n{body}\n")
    (tmp_path / "apptainer").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "CTK_GATE_START_LIMIT": "4"}
    script = subprocess.Popen(
        ["timeout", "-s", "KILL", "60", "bash", "-c", f"{GATE}\necho the program"],
        cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip

    def signal_all(number: signal.Signals) -> None:
        subprocess.run(["pkill", f"-{number.value}", "-s", str(script.pid)], check=True)

    try:
        until((tmp_path / "began").exists)
        signal_all(signal.SIGSTOP)
        time.sleep(5)
        signal_all(signal.SIGCONT)
        said = script.communicate(timeout=30)[0]
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(script.pid)], check=False)
    assert (script.returncode, said.splitlines()[-1]) == (0, "the program")


def test_gate_container_that_does_not_start_is_the_reason(tmp_path: Path) -> None:
    done = run(tmp_path, "echo 'FATAL: no such image' >&2; exit 255")
    assert done.returncode == 1
    assert "did not start (status 255) [container-did-not-start]. Its own message: FATAL: no such image" in done.stderr


@pytest.mark.parametrize("body", ["true", "echo 'FATAL:   stat /bin/sh: no such file or directory' >&2; exit 255"])
def test_gate_image_that_cannot_answer_is_not_stopped(tmp_path: Path, body: str) -> None:
    done = run(tmp_path, body)
    assert done.returncode == 0
    assert "n7: not checked" in done.stdout
    assert done.stdout.endswith("\nthe program\n")


@pytest.mark.parametrize(
    ("variables", "again"),
    [
        ({"SLURM_JOB_ID": "7"}, "Submit again without this node (sbatch --exclude=n7), and report n7 to your site."),
        ({"SGE_TASK_ID": "undefined"}, "Submit again without this node (qsub -l hostname=\\!n7), and report n7 to"),
        ({"PBS_JOBID": "7.pbs1"}, "[cuda-init-failed]. Submit again, and report n7 to your site.\n"),
        ({}, "[cuda-init-failed]. Submit again, and report n7 to your site.\n"),
    ],
)
def test_printed_gate_has_the_words_of_the_scheduler_that_runs_it(
    tmp_path: Path, variables: dict[str, str], again: str
) -> None:
    variables = {"SLURM_JOB_ID": "", **variables}
    for answer in ("cuda 304", "cuda 100"):
        done = run(tmp_path, f"echo ctk-gate: {answer}", **variables)
        assert done.returncode == 1
        if not variables["SLURM_JOB_ID"]:
            assert not re.search("slurm|sbatch", done.stderr, re.IGNORECASE)
        assert again in done.stderr or answer == "cuda 100"
    assert "Ask the scheduler for a GPU in the way of your site, and do not set" in done.stderr


def test_gate_driver_that_hangs_ends_the_script(tmp_path: Path) -> None:
    hanging = f"{CALL}trap '' TERM; sleep 600 & wait; wait"
    done = run(tmp_path, hanging, **QUICK)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "ctk: GPU gate: n7: the driver did not answer within 1 s: cuInit did not return [driver"
    )
    assert done.stderr.count("\n") == 1, "nothing of bash about the signal"


@pytest.mark.parametrize("ending", ["TERM", "KILL"])
def test_gate_leaves_no_container_where_the_script_is_ended(tmp_path: Path, ending: str) -> None:
    (tmp_path / "bin").mkdir()
    runtime = tmp_path / "bin" / "apptainer"
    runtime.write_text("#!/bin/bash\necho $$ >started && mv started number\nexec sleep 60\n")
    runtime.chmod(0o755)
    environment = {"PATH": f"{runtime.parent}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n7"}
    with subprocess.Popen(["bash", "-c", GATE], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as script:
        until((tmp_path / "number").exists)
        script.send_signal(getattr(signal, f"SIG{ending}"))
    number = (tmp_path / "number").read_text().strip()
    until(lambda: not Path("/proc", number).exists())


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("directory", [".", "/nowhere"])
def test_gate_process_that_no_signal_ends_does_not_hold_the_script_up(tmp_path: Path, directory: str) -> None:
    """A process that sleeps in the kernel survives SIGKILL, and keeps open what its answer is written to."""
    began = time.monotonic()
    hanging = f"{CALL}trap '' TERM; setsid sleep 20 & sleep 600"
    done = run(tmp_path, hanging, TMPDIR=directory, **QUICK)
    assert time.monotonic() - began < 8
    assert done.returncode == 1
    assert "n7: the driver did not answer within 1 s: cuInit did not return [driver-hangs]. Submit" in done.stderr
    assert "--exclude=n7" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_gate_without_a_place_for_a_file_asks_by_a_pipe(tmp_path: Path) -> None:
    nowhere = GATE.replace("/dev/shm", "/nowhere").replace('"${TMPDIR:-/tmp}" /tmp;', "/nowhere;")
    assert nowhere.count("/nowhere") == 2
    assert run(tmp_path, "echo ctk-gate: gpus 1", nowhere).stdout == "ctk: GPU gate: n7: usable GPUs: 1\nthe program\n"
    limit = "$((start + 5 * call + 30))"
    assert GATE.count(limit) == 1
    done = run(tmp_path, "setsid sleep 8 & exit 0", nowhere.replace(limit, "1"))
    assert done.returncode == 1
    assert "not every node of " in done.stderr
    assert "answered within 1 s [gate-unanswered]. Submit again without the nodes that printed no line" in done.stderr


def test_gate_skips_stand_ins_of_a_practice_cluster_only(tmp_path: Path) -> None:
    (tmp_path / "lab" / "gpu").mkdir(parents=True)
    (tmp_path / "lab" / "bin").mkdir()
    (tmp_path / "lab/gpu/gpu0").symlink_to("/dev/null")
    lab = {MARK_VARIABLE: str(tmp_path / "lab"), "SLURM_CLUSTER_NAME": f"{CLUSTER_PREFIX}default"}
    bad = "echo ctk-gate: cuda 999"
    assert run(tmp_path, bad, **lab).stdout == "ctk: GPU gate: n7: stand-in GPU, not checked\nthe program\n"
    assert run(tmp_path, bad, **{**lab, "SLURM_CLUSTER_NAME": "tsubame"}).returncode == 1, "a job of another cluster"
    assert run(tmp_path, bad, **{**lab, MARK_VARIABLE: ""}).returncode == 1
    (tmp_path / "lab/bin/ldconfig.real").touch()
    assert run(tmp_path, bad, **lab).returncode == 1, "a lab with a stand-in driver"
    (tmp_path / "lab/bin/ldconfig.real").unlink()
    (tmp_path / "lab/gpu/gpu0").unlink()
    assert run(tmp_path, bad, **lab).returncode == 1, "a lab with real GPUs"


SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do shift; done
for node in n1 n2; do SLURMD_NODENAME=$node "$@" || status=1; done
exit ${status:-0}
"""


def test_gate_asks_each_node_and_names_the_broken_one(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/srun").write_text(SRUN)
    (tmp_path / "bin/srun").chmod(0o755)
    body = '[ "$SLURMD_NODENAME" = n1 ] && echo ctk-gate: gpus 1 || echo ctk-gate: cuda 803'
    done = run(tmp_path, body, SLURM_JOB_NUM_NODES="2")
    assert done.returncode == 1
    assert done.stdout == "ctk: GPU gate: n1: usable GPUs: 1\n"
    assert "n2: cuInit returned 803" in done.stderr
    assert "--exclude=n2" in done.stderr


def answered(output: str) -> str:
    """The answer, which is the last line; those before it say what was begun."""
    *stages, answer = output.splitlines()
    assert all(re.match("ctk-stage: [0-9]+ (start|call|call/[0-9]+) ", stage) for stage in stages)
    return answer.removeprefix("ctk-gate: ")


def _in_container() -> str:
    """The part that the container's shell runs."""
    return GATE.split("<<'END'\n")[1].split("\nEND\n")[0]


@pytest.mark.programs
def test_gate_passes_shellcheck(tmp_path: Path) -> None:
    (tmp_path / "gate.sh").write_text(f"#!/bin/bash\n{GATE}")
    (tmp_path / "inside.sh").write_text(f"#!/bin/sh\n{_in_container()}\n")
    done = subprocess.run(
        ["shellcheck", tmp_path / "gate.sh", tmp_path / "inside.sh"], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("programs", "answer"),
    [
        ({"python3": 'echo "ctk-gate: gpus 1"; exit 42'}, "gpus 1"),
        ({"python3": "exit 0", "nvidia-smi": "echo GPU 0: x"}, "listed 1"),
        ({"python3": "kill -SEGV $$"}, "crashed 139"),
        ({"python3": "exit 1", "nvidia-smi": "echo GPU 0: x; echo '  MIG 1g'; echo GPU 1: y"}, "listed 2"),
        ({"nvidia-smi": "echo No devices were found; exit 6"}, "unlisted No devices were found"),
        ({"nvidia-smi": "exit 127"}, "files 0"),
        ({}, "files 0"),
    ],
)
def test_gate_in_an_image_takes_what_is_there(tmp_path: Path, programs: dict[str, str], answer: str) -> None:
    if Path("/dev/nvidia0").exists():
        answer = re.sub("^files 0$", f"files {len(list(Path('/dev').glob('nvidia[0-9]*')))}", answer)
    (tmp_path / "libcuda.so.1").touch()
    for name, body in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": str(tmp_path), "LD_LIBRARY_PATH": f"/nowhere:{tmp_path}"}
    argv = ["/bin/sh", "-c", _in_container(), "sh", "the question for Python", "1", "1"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert (answered(done.stdout), done.stderr) == (answer, "")


def test_gate_without_libcuda_or_visible_devices_is_told_without_python(tmp_path: Path) -> None:
    argv = ["/bin/sh", "-c", _in_container(), "sh", "", "0", "1"]
    environment = {"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    assert subprocess.run(argv, env=environment, capture_output=True, text=True, check=False).stdout == (
        "ctk-gate: cuda 100\n"
    )


def test_gate_ends_with_status_3_where_a_layer_is_not_mounted(tmp_path: Path) -> None:
    name = "ctk-layer-" + "a" * 32
    done = run(tmp_path, f"echo 'ctk-gate: layer {name}'")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"n7: {name} of the image is not mounted: this runtime or host ignored it" in done.stderr
    assert done.stderr.endswith(f"[layer-not-mounted]. {FIX}\n")


def test_gate_looks_for_the_layers_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / "python3").write_text("#!/bin/sh\necho ctk-gate: gpus 1\nexit 42\n")
    (tmp_path / "python3").chmod(0o755)
    there, missing = tmp_path / ("ctk-layer-" + "1" * 32), "ctk-layer-" + "2" * 32
    there.touch()
    text = _in_container().replace("/.singularity.d", str(tmp_path), 1)
    for layers, answer in (((there.name, missing), f"layer {missing}"), ((there.name,), "gpus 1"), ((), "gpus 1")):
        argv = ["/bin/sh", "-c", text, "sh", "the question for Python", "1", "1", *layers]
        done = subprocess.run(argv, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)
        assert (answered(done.stdout), done.stderr) == (answer, "")


def test_gate_hands_the_layers_of_the_file_to_the_container(tmp_path: Path) -> None:
    names = ["ctk-layer-" + digit * 32 for digit in "10"]
    layers = [replace(overlay(b"hsqs"), name=name) for name in names]
    image = write_sif(tmp_path / "my trial.sif", [system(b"hsqs"), *layers])
    lines = gate_lines(f"./{image.name}", userns=False)
    body = 'printf "%s|" "${@: -2}" >seen; echo ctk-gate: gpus 1'
    assert run(tmp_path, body, f"IFS=,\n{lines}").returncode == 0
    assert (tmp_path / "seen").read_text() == "".join(f"{name}|" for name in names)
    known = gate_lines(f"./{image.name}", userns=False, layers=layers_of(image))
    write_sif(image, [system(b"hsqs"), layers[0]])
    assert run(tmp_path, body, known).returncode == 0
    assert (tmp_path / "seen").read_text() == "".join(f"{name}|" for name in names), "the same file has lost one"
    another = image.read_bytes()
    image.write_bytes(another[:48] + b"another image..." + another[64:])
    assert run(tmp_path, 'echo "$*" >seen; echo ctk-gate: gpus 1', known).returncode == 0
    assert names[0] in (tmp_path / "seen").read_text()
    assert names[1] not in (tmp_path / "seen").read_text()


def test_gate_codes_are_explained() -> None:
    codes = set(re.findall(r"\[([a-z]+(?:-[a-z]+)+)\]", FRAMEWORK))
    assert len(codes) > 10
    assert codes <= set(explanations())


def test_gate_environment_of_the_script_is_not_changed(tmp_path: Path) -> None:
    script = f"before=$(export -p; trap; shopt; umask; pwd)\n{GATE}\n"
    script += '[ "$before" = "$(export -p; trap; shopt; umask; pwd)" ] && echo same'
    assert run(tmp_path, "echo ctk-gate: gpus 1", script, HOME=os.environ["HOME"]).stdout.endswith(
        "same\nthe program\n"
    )


FRAMEWORK = gate_lines("./trial.sif", userns=False, check=GateCheck("Name", "print('the text')", "/opt/my python"))


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        ("echo ctk-gate: computed 2 Name 1 computed on 2 GPUs", 0, "n7: usable GPUs: 2; Name 1 computed on 2 GPUs\n"),
        (
            "echo ctk-gate: computed 1 Name 1 computed on 1 GPU",
            0,
            "n7: warning: usable GPUs: 2; Name 1 computed on 1 GPU: it does not see all GPUs of the driver\n",
        ),
        ("echo ctk-gate: fails wrong-result Name differs", 1, "n7: Name differs [wrong-result]. ctk check-gpu on this"),
        (
            "echo ctk-gate: fails framework-import-fails Name: no",
            1,
            "n7: Name: no [framework-import-fails]. The image is at fault, not the node: ctk audit ./trial.sif says",
        ),
        (
            "echo ctk-gate: fails result-not-on-gpu Name",
            1,
            "the image is probably at fault: ctk audit ./trial.sif says",
        ),
        ("echo ctk-gate: fails framework-compute-fails N", 1, "ctk audit ./trial.sif says of the image. If it finds"),
        (
            "echo last words; exit 139",
            1,
            "ended without an answer (status 139) [framework-crashes]. Its last line: last",
        ),
        (f"{CALL}sleep 60", 1, "the framework did not answer within 5 s: cuInit [framework-hangs]. "),
    ],
)
def test_gate_has_the_framework_compute_after_the_driver(tmp_path: Path, answer: str, status: int, words: str) -> None:
    body = f'[[ $* == *"/opt/my python -c print("* ]] || {{ echo ctk-gate: gpus 2; exit; }}\n{answer}'
    done = run(tmp_path, body, FRAMEWORK, **QUICK)
    assert done.returncode == status, done.stderr
    assert words in done.stdout + done.stderr
    assert ("the program" in done.stdout) == (status == 0)
    assert ("--exclude" in done.stderr) == (status == 1 and bool(re.search("wrong|compute|60", answer)))
    assert done.stdout.startswith("ctk: GPU gate: n7: checks Name (each step at most 5 s)\n")


def test_gate_asks_no_framework_where_the_driver_is_broken(tmp_path: Path) -> None:
    done = run(tmp_path, "echo $* >> asked; echo ctk-gate: cuda 999", FRAMEWORK)
    assert done.returncode == 1
    assert (tmp_path / "asked").read_text().count("/trial.sif") == 1


@pytest.mark.programs
def test_gate_with_a_framework_passes_shellcheck(tmp_path: Path) -> None:
    (tmp_path / "gate.sh").write_text(f"#!/bin/bash\n{FRAMEWORK}")
    done = subprocess.run(["shellcheck", tmp_path / "gate.sh"], capture_output=True, text=True, check=False)
    assert done.stdout == ""


CUDA = """
import ctypes

class Cuda:
    def cuInit(self, flags):
        return {init}

    def cuDeviceGetCount(self, count):
        count._obj.value = 2
        return 0

    def cuDeviceGetName(self, name, length, device):
        return 0

    def cuDeviceGet(self, device, index):
        device._obj.value = index
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device):
        return {contexts}[device.value]

    def {release}(self, device):
        return 0

ctypes.CDLL = lambda name: Cuda()
"""


@pytest.mark.parametrize(
    ("driver", "visible", "answer"),
    [
        ({}, None, "gpus 2"),
        ({"contexts": (0, 46)}, None, "gpus 1 - 46 1"),
        ({"contexts": (999, 0)}, "0,1", "context 999 0 1 2"),
        ({"release": "other"}, None, "visible 2"),
        ({}, "0,1,2", "few 2 3 3"),
        ({"init": 100}, "", "cuda 100 "),
        ({"init": 100}, None, "cuda 100 (not set)"),
    ],
)
def test_gate_in_python_begins_to_use_each_gpu(driver: dict[str, object], visible: str | None, answer: str) -> None:
    text = GATE.split("<<'END'\n")[2].split("\nEND\n")[0]
    stand_in = CUDA.format(**{"init": 0, "contexts": (0, 0), "release": "cuDevicePrimaryCtxRelease_v2", **driver})
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    argv = [sys.executable, "-E", "-s", "-S", "-c", f"{stand_in}\n{text}", "0", "2"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert (answered(done.stdout), done.stderr) == (answer, "")


def test_gate_variable_that_the_job_emptied_does_not_blame_the_node(tmp_path: Path) -> None:
    done = run(tmp_path, "echo 'ctk-gate: cuda 100 '", CUDA_VISIBLE_DEVICES="0")
    assert "in the container, CUDA_VISIBLE_DEVICES is empty [no-visible-device]. Ask the scheduler" in done.stderr
    assert "--exclude" not in done.stderr


def test_printed_gate_refuses_sh_and_a_host_without_a_runtime(tmp_path: Path) -> None:
    script = f"{GATE}\necho the program\n"
    environment = {"PATH": str(tmp_path), "SLURMD_NODENAME": "n7"}
    (tmp_path / "cat").symlink_to("/bin/cat")
    done = subprocess.run(
        ["/bin/bash", "-c", script], env=environment, cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (127, "")
    assert "neither apptainer nor singularity is on PATH on n7" in done.stderr
    done = subprocess.run(["dash", "-c", script], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ctk: GPU gate: these lines need bash")
