"""What the three commands for job scripts have in common."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

from toolkit.cli.job_script import JobOptions
from toolkit.cli.qsub import qsub
from toolkit.cli.sbatch import sbatch
from toolkit.cli.script import script


@pytest.mark.parametrize("command", [sbatch, qsub, script])
def test_each_parameter_is_an_option_of_a_job(command: object) -> None:
    names = {field.name for field in fields(JobOptions)}
    given = set(inspect.signature(command).parameters)  # type: ignore[arg-type]
    assert given - {"scheduler"} <= names
    assert names - given <= {"request", "group"}
