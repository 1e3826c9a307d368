"""What the three commands for job scripts have in common."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.cli.job_script import JobOptions
from toolkit.cli.qsub import qsub
from toolkit.cli.sbatch import sbatch
from toolkit.cli.script import script
from toolkit.scheduler.programs import Scheduler

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("command", [sbatch, qsub, script])
def test_each_parameter_is_an_option_of_a_job(command: object) -> None:
    names = {field.name for field in fields(JobOptions)}
    given = set(inspect.signature(command).parameters)  # type: ignore[arg-type]
    assert given - {"scheduler"} <= names
    assert names - given <= {"request", "group", "constraint"}


# Of each option values that some scheduler takes, and some that none does.
_VALUES = {
    "--job-name": ("x", "x", "7x", "a/b", "a b", ""),
    "--gpus": ("0", "2", "a100:2", "3", "x:y", "-1"),
    "--nodes": ("1", "2", "0"),
    "--ntasks-per-node": ("1", "4", "0"),
    "--ntasks": ("2", "3", "0"),
    "--cpus-per-task": ("1", "3", "many"),
    "--module": ("cuda/12.4", "a b", "$(id)"),
    "--time": ("1:00:00", "UNLIMITED", "soon", "-5"),
    "--mem": ("16G", "0", "4X"),
    "--array": ("1-9", "0-9:2%4", "1,3", "9-1", "1-", "$(id)"),
    "--partition": ("gpu", "a,b", "a b", "#"),
    "--account": ("lab", "a'b"),
    "--qos": ("high", "x\ny"),
    "--directive": ("--exclusive", "-m ea", "-o /dev/null", "--output=x", "-l gpu=1", "exclusive"),
    "--request": ("-l node_f={nodes}", "-l x={none}", "node_f=1"),
    "--bind": (".", "/no/such/directory:/data"),
    "--env": ("A=1", "A B=1"),
}
_OPTIONS = st.sets(st.sampled_from(sorted(_VALUES)), max_size=4).flatmap(
    lambda names: st.fixed_dictionaries({name: st.sampled_from(_VALUES[name]) for name in names})
)


@pytest.mark.parametrize("scheduler", list(Scheduler))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(options=_OPTIONS)
def test_job_is_written_or_refused_before_anything_is_written(
    ctk: Ctk, scheduler: Scheduler, options: dict[str, str]
) -> None:
    (ctk.directory / "trial.sif/.singularity.d").mkdir(parents=True, exist_ok=True)
    words = [f"{name}={value}" for name, value in options.items()]
    script = ctk.directory / "out.script"
    script.unlink(missing_ok=True)
    before = sorted(ctk.directory.rglob("*"))
    done = ctk("script", f"--scheduler={scheduler}", "--output=out.script", *words, "--", "true", status=None)
    after = sorted(ctk.directory.rglob("*"))
    if done.status == 0:
        assert after == sorted([*before, script])
        return
    assert done.status == 2
    assert after == before
    assert done.stderr.startswith(("Error: ", "Usage: "))
