"""Slurm: scripts against golden files, and what its language has."""

from __future__ import annotations

import pytest

from tests.jobs.dialects.golden import GOLDEN, SLURM_JOBS, check_golden
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Directive, GateCheck, Job
from toolkit.scheduler.values import Gpus


@pytest.mark.parametrize("name", SLURM_JOBS)
def test_script_golden_file(name: str) -> None:
    check_golden(f"{name}.sbatch")


def test_the_driver_is_bound_only_where_gpus_are_asked_for() -> None:
    def texts(**resources: object) -> str:
        return script_text(Job("x", "./x.sif", ("true",), **resources), SLURM, "")  # type: ignore[arg-type]

    assert " --nv " in texts(gpus=Gpus(1))
    assert " --nv " in texts(directives=(Directive("gres", "gpu:1"),))
    assert " --nv " not in texts(gpus=Gpus(0)) + texts() + texts(directives=(Directive("exclusive"),))


def test_image_is_named_where_the_container_has_variables() -> None:
    check = GateCheck("PyTorch", "pass", "python3")
    job = Job("x", "./my x.sif", ("true",), gpus=Gpus(1), environment=(("A", "./my x.sif"),), gate_check=check)
    text = script_text(job, SLURM, "")
    assert "printf -v audit 'ctk audit %q' './my x.sif'\n" in text
    assert 'exec "$runtime" --quiet exec --nv "$image" "${check[@]}" env \'A=./my x.sif\' true\n' in text


def test_several_tasks_are_started_by_srun_and_one_is_not() -> None:
    assert 'srun --export=ALL bash -c "$protected" "$image" "$runtime" --quiet exec' in script_text(
        Job("x", "./x.sif", ("true",), nodes=2), SLURM, ""
    )
    assert "srun" not in script_text(Job("x", "./x.sif", ("true",), nodes=1, cpus_per_task=2), SLURM, "")


def test_the_plain_script_can_be_read_at_once() -> None:
    assert len((GOLDEN / "no-gate.sbatch").read_text().splitlines()) <= 165


def test_gate_is_in_scripts_that_ask_for_gpus_and_names_no_framework() -> None:
    plain = (GOLDEN / "plain.sbatch").read_text()
    assert "gpu_gate " in plain
    assert "gpu_gate" not in (GOLDEN / "no-gate.sbatch").read_text() + (GOLDEN / "array.sbatch").read_text()
    gate = plain[plain.index("# The GPU gate") :].lower()
    assert [name for name in ("torch", "tensorflow", "jax", "cupy", "onnx", "paddle") if name in gate] == []


@pytest.mark.parametrize(
    ("value", "tasks", "written"),
    [
        ("USR1@90", 1, "--signal=B:USR1@90"),
        ("B:USR1@90", 1, "--signal=B:USR1@90"),
        ("R:TERM", 1, "--signal=BR:TERM"),
        ("USR1@90", 2, "--signal=USR1@90"),
    ],
)
def test_warning_before_the_limit_reaches_a_job_without_srun(value: str, tasks: int, written: str) -> None:
    job = Job("x", "./x.sif", ("true",), tasks_per_node=tasks, directives=(Directive("signal", value),))
    assert f"#SBATCH {written}\n" in script_text(job, SLURM, "")


def test_several_tasks_get_their_signals_from_slurm() -> None:
    """srun ends the tasks at SIGHUP, and at the second of two SIGINT."""
    assert 'scancel --signal="$1" "$job"' in script_text(Job("x", "./x.sif", ("true",), nodes=2), SLURM, "")


def test_directory_with_a_percent_sign_is_written_so_that_slurm_reads_it_back() -> None:
    text = script_text(Job("x", "./x.sif", ("true",), directory="/a b/50%j"), SLURM, "")
    assert '#SBATCH --output="/a b/50%%j/%x-%j.log"\n' in text
