"""`ctk script` for each scheduler, results, temporary files, links and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.test_qsub import ctk
from tests.cli.test_qsub import directory as directory
from toolkit.jobs.dialects.template import BLOCKS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

EACH = pytest.mark.parametrize("scheduler", ["slurm", "sge", "pbs", "torque"])


def script(directory: Path) -> str:
    (found,) = (path for path in directory.iterdir() if path.stem == "x")
    return found.read_text()


@EACH
def test_results_and_temporary_files_are_directories_of_the_job(
    directory: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    words = ("--scheduler", scheduler, "-J", "x", "--gpus", "0", "--results", "--node-tmp", "--cpus-per-task", "4")
    assert ctk(monkeypatch, "script", *words) == 0
    text = script(directory)
    assert 'export CTK_RESULTS="$PWD/results/' in text
    assert '--bind "$node_tmp" "$image"' in text
    assert "export OMP_NUM_THREADS=" in text


@EACH
def test_links_are_bound_where_asked_for(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scheduler: str
) -> None:
    (directory / "data").symlink_to("/opt")
    command = ("script", "--scheduler", scheduler, "-J", "x", "--gpus", "0")
    assert ctk(monkeypatch, *command) == 0
    assert "data leads to /opt" in capsys.readouterr().err
    assert ctk(monkeypatch, *command, "--bind-links") == 0
    assert "data leads to" not in capsys.readouterr().err
    assert " --bind /opt " in script(directory)


@EACH
def test_template_of_the_user_has_the_blocks_and_own_lines(
    directory: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    lines = [f'{{% include "blocks/{block}.j2" %}}' for block in BLOCKS]
    lines.insert(-2, "export NCCL_DEBUG=INFO # {{ scheduler.title }}")
    (directory / "mine.j2").write_text("\n".join(lines) + "\n")
    command = ("script", "--scheduler", scheduler, "-J", "x", "--gpus", "1", "--template", "mine.j2")
    assert ctk(monkeypatch, *command) == 0
    text = script(directory)
    assert text.startswith("#!/bin/bash\n# Job x for ")
    assert text.index("export NCCL_DEBUG=INFO") < text.index("trap 'forward TERM'")
    assert ctk(monkeypatch, *command) == 0, "ctk knows its own script"


@EACH
def test_line_buffered_starts_the_program_with_stdbuf_of_the_image(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scheduler: str
) -> None:
    command = ("script", "--scheduler", scheduler, "-J", "x", "--gpus", "0", "--line-buffered")
    assert ctk(monkeypatch, *command) == 2
    assert "--line-buffered needs the program stdbuf, which" in capsys.readouterr().err
    assert not list(directory.glob("x.*"))
    (directory / "trial.sif/usr/bin/stdbuf").touch()
    assert ctk(monkeypatch, *command) == 0
    assert '"$image" "${check[@]}" stdbuf -oL python train.py\n' in script(directory)
