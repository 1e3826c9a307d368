"""A user's own template: its blocks, and what cannot be filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.template import BLOCKS, read_template
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Job
from toolkit.scheduler.values import Gpus
from toolkit.support import bounded
from toolkit.support.errors import WrongInput
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

LINES = [f'{{% include "blocks/{block}.j2" %}}' for block in BLOCKS]
JOB = Job("x", "./x.sif", ("true",), gpus=Gpus(1), monitor=True)


def written(directory: Path, *lines: str) -> Path:
    path = directory / "mine.j2"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_shipped_template_is_one_as_well() -> None:
    template = read_template(shipped("sbatch") / "job.j2")
    assert script_text(JOB, SLURM, "Marker", template) == script_text(JOB, SLURM, "Marker")


def test_lines_between_the_blocks_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, *LINES[:6], "echo {{ scheduler.title }} {{ number }}", *LINES[6:])
    assert "\necho Slurm $SLURM_JOB_ID\n" in script_text(JOB, SLURM, "", read_template(path))


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (LINES[1:], "does not include header"),
        ([LINES[1], LINES[0], *LINES[2:]], "in their order"),
        ([*LINES, LINES[-1]], "in their order"),
        ([*LINES, "{% if %}"], "mine.j2:9"),
        (["#!/bin/bash"], "does not include header, log"),
        (["{% if false %}", *LINES, "{% endif %}"], "mine.j2:2: blocks/header.j2 is in another statement"),
        ([*LINES[:7], "{% for i in [1, 2] %}", LINES[7], "{% endfor %}"], "is in another statement"),
        (["{% extends 'job.j2' %}", *LINES], "mine.j2:1: a template can only include"),
        ([*LINES, "{% set name = 'job.j2' %}{% include name %}"], "can only include, by a name"),
        ([*LINES, "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"], "nested too deeply"),
    ],
)
def test_template_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    with pytest.raises(WrongInput) as caught:
        read_template(written(tmp_path, *lines))
    assert said in caught.value.message


@pytest.mark.parametrize(
    "line",
    [
        "{{ nothing }}",
        "{{ 1 / 0 }}",
        "{{ scheduler.title.nothing.more }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        '{% include "blocks/nothing.j2" %}',
        '{% include "/etc/passwd" %}',
        '{% include "../pyproject.toml" %}',
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
        "{{ 'x' * 5000000000 }}",
        "{{ '%999999999d' % 1 }}",
        "{{ '{:>2000000000}'.format(1) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}line\n{% endfor %}{% endfor %}",
        "if then fi (",
    ],
)
def test_template_that_cannot_be_filled_is_wrong_input(tmp_path: Path, line: str) -> None:
    template = read_template(written(tmp_path, *LINES[:6], line, *LINES[6:]))
    with pytest.raises(WrongInput, match=r"mine\.j2"):
        script_text(JOB, SLURM, "", template)


def test_template_that_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "binary.j2").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "missing.j2", tmp_path / "binary.j2"):
        with pytest.raises(WrongInput, match="template"):
            read_template(path)


def test_nothing_stands_before_the_first_line(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="before the first line"):
        script_text(JOB, SLURM, "", read_template(written(tmp_path, "echo early", *LINES)))


def test_template_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "_SECONDS", 1)
    line = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    with pytest.raises(WrongInput, match="too much time"):
        script_text(JOB, SLURM, "", read_template(written(tmp_path, *LINES, line)))
