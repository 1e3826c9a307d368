"""The script's file, its submission, and what is said about jobs that are probably not meant."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest

from toolkit.jobs.model import Job
from toolkit.jobs.scripts import make_script, untouched_job, write_script
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput

JOB = Job("x", "./trial.sif", ("python", "train.py"), gpus=Gpus(1))


def test_ctk_replaces_its_own_script_of_the_same_job(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    write_script(make_script(JOB, path))
    newer = make_script(dataclasses.replace(JOB, time=60), path)
    write_script(newer)
    assert path.read_text() == newer.text
    assert untouched_job(newer.text) == "x"


def test_a_script_that_a_user_changed_or_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    script = make_script(JOB, path)
    for text in (script.text.replace("train.py", "my.py"), script.text + "echo\n", "#!/bin/bash\n", "\udcff"):
        path.write_text(text, errors="surrogateescape")
        with pytest.raises(WrongInput, match="by hand"):
            write_script(script)
        assert path.read_text(errors="surrogateescape") == text
    write_script(script, force=True)
    assert path.read_text() == script.text


def test_the_script_of_another_job_stays(tmp_path: Path) -> None:
    path = tmp_path / "x.sbatch"
    write_script(make_script(dataclasses.replace(JOB, name="other"), path))
    with pytest.raises(WrongInput, match="of the job other"):
        write_script(make_script(JOB, path))


def test_a_directory_is_no_file_for_a_script(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="is a directory"):
        write_script(make_script(JOB, tmp_path))


def test_a_pipe_is_no_file_for_a_script_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for force in (False, True):
        with pytest.raises(WrongInput, match="neither a file nor a directory"):
            write_script(make_script(JOB, tmp_path / "pipe"), force=force)


HOME = Path("/home/user/work")
