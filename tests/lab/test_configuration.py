"""The texts that a lab's Slurm reads, held against golden files, and the shell parts of them run by a real shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.lab.configuration import Host, bashrc, gres_conf, shell_command, shell_text, slurm_conf, task_prolog
from toolkit.lab.paths import LabPaths
from toolkit.lab.plan import LabPlan

GOLDEN = Path(__file__).parent / "golden"
PLACE = LabPaths(Path("/tmp/ctk-lab-abcdefgh"))
HOST = Host("login1", "ada")
REAL = tuple(f"/dev/nvidia{number}" for number in range(3))


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("usual", LabPlan()),
        ("no-gpus", LabPlan(name="class-2", nodes=1, gpus_per_node=0, cpus_per_node=1, memory_per_node=1)),
        ("real-gpus", LabPlan(nodes=4, gpu_type="h200", real_gpus=REAL)),
    ],
)
def test_the_configuration_is_this_text(name: str, plan: LabPlan) -> None:
    text = f"{slurm_conf(plan, PLACE, HOST, 20100)}--- gres.conf\n{gres_conf(plan, PLACE)}"
    golden = GOLDEN / f"{name}.conf"
    if os.environ.get("WRITE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def prologue(plan: LabPlan, definition: str | None, environment: dict[str, str]) -> dict[str, str]:
    """What a task would find in its environment: slurmstepd reads the lines that begin with `export`."""
    script = task_prolog(plan, PLACE, definition)
    shown = subprocess.run(
        ["/bin/sh", "-eu", "-c", script],
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not shown.stderr
    return dict(line.removeprefix("export ").split("=", 1) for line in shown.stdout.splitlines())


def test_task_finds_the_lab_s_programs_first_and_once() -> None:
    given = prologue(LabPlan(), None, {"PATH": "/bin"})
    assert given["PATH"] == f"{PLACE.programs}:/bin"
    assert "PATH" not in prologue(LabPlan(), None, given)


def test_a_task_gets_module_and_the_lab_s_modules_once() -> None:
    modules = str(PLACE.modulefiles)
    given = prologue(LabPlan(), "/usr/share/modules/init/bash", {"MODULEPATH": "/opt/modules"})
    assert given["BASH_ENV"] == "/usr/share/modules/init/bash"
    assert given["MODULEPATH"] == f"{modules}:/opt/modules"
    again = prologue(LabPlan(), "/usr/share/modules/init/bash", {**given})
    assert "MODULEPATH" not in again
    assert "BASH_ENV" not in again


@pytest.mark.parametrize(
    ("environment", "devices"),
    [
        ({"SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0"}, "0"),
        ({"SLURMD_NODENAME": "n1", "SLURM_JOB_GPUS": "1", "CUDA_VISIBLE_DEVICES": "1"}, "2"),
        ({"SLURMD_NODENAME": "n1", "SLURM_STEP_GPUS": "0,1", "CUDA_VISIBLE_DEVICES": "1,0"}, "2,0"),
        ({"SLURMD_NODENAME": "n2", "SLURM_STEP_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0"}, "1"),
        ({"SLURMD_NODENAME": "n2", "CUDA_VISIBLE_DEVICES": "0"}, None),
        ({"SLURMD_NODENAME": "n2", "SLURM_JOB_GPUS": "0"}, None),
    ],
)
def test_the_gpus_of_a_node_are_those_of_the_machine(environment: dict[str, str], devices: str | None) -> None:
    plan = LabPlan(nodes=2, real_gpus=REAL)
    assert prologue(plan, None, environment).get("CUDA_VISIBLE_DEVICES") == devices


def test_stand_ins_are_left_as_slurm_numbers_them() -> None:
    environment = {"SLURMD_NODENAME": "n2", "SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "0"}
    assert "CUDA_VISIBLE_DEVICES" not in prologue(LabPlan(), None, environment)


@given(
    st.dictionaries(
        st.from_regex(r"V[A-Z0-9_]{0,8}", fullmatch=True),
        st.text(st.characters(exclude_characters="\0", codec="utf-8")),
    )
)
def test_eval_gives_back_every_value(environment: dict[str, str]) -> None:
    script = f"{shell_text(environment)}env -0"
    shown = subprocess.run(["/bin/sh", "-c", script], env={"PATH": os.defpath}, capture_output=True, check=True).stdout
    found = dict(pair.split("=", 1) for pair in shown.decode().split("\0") if pair)
    assert {name: found[name] for name in environment} == environment


def test_a_bash_reads_the_lab_s_start_up_file_and_other_shells_none() -> None:
    assert shell_command("/usr/bin/bash", PLACE) == ["/usr/bin/bash", "--rcfile", str(PLACE.bashrc)]
    assert shell_command("/usr/bin/fish", PLACE) == ["/usr/bin/fish"]
    assert shell_command(None, PLACE) == ["/bin/sh"]


def test_the_shell_of_a_lab_says_which_and_keeps_what_the_user_set(tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text("mine=kept; PS1='$ '; SLURM_CONF=/elsewhere\n")
    script = bashrc(LabPlan(name="class"), PLACE, None) + 'echo "$mine|$PS1|$SLURM_CONF"'
    shown = subprocess.run(["bash", "-c", script], env={"HOME": str(tmp_path)}, capture_output=True, text=True)
    assert shown.stdout == f"kept|(lab class) $ |{PLACE.slurm_conf}\n"
