"""An option of sbatch is one entry of a table: recipe, command line, script and submission read it there."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from toolkit.cli.sbatch import sbatch
from toolkit.jobs.defaults import JobRequest, complete
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.submission import sbatch_environment
from toolkit.recipes.load import load_recipe
from toolkit.recipes.model import Base
from toolkit.scheduler.resources import OPTIONS, Option
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput

# A value that each check lets through, where it is not a word; and as the script has it.
WRITTEN: dict[str, tuple[str | int, str]] = {
    "array": ("0-9", "0-9"),
    "nodes": (2, "2"),
    "tasks_per_node": (2, "2"),
    "cpus_per_task": (2, "2"),
    "gpus": ("tesla:1", "tesla:1"),
    "mem": ("2G", "2G"),
    "time": ("90", "01:30:00"),
}
EACH = pytest.mark.parametrize(("key", "option"), OPTIONS.items())


def lines(text: str) -> list[str]:
    return [line.removeprefix("#SBATCH ") for line in text.splitlines() if line.startswith("#SBATCH ")]


@EACH
def test_option_of_the_command_line_reaches_the_script(key: str, option: Option, tmp_path: Path) -> None:
    given, written = WRITTEN.get(key, ("word", "word"))
    parameter = inspect.signature(sbatch).parameters[key]
    assert str(parameter.default) == "None"
    names = inspect.get_annotations(sbatch, eval_str=True)[key].__metadata__[0].param_decls or (f"--{option.name}",)
    assert f"--{option.name}" in names
    request = JobRequest(command=("true",), resources={key: given})
    job = complete(request, name="x", image=Path("x.sif"), recipe=None, directory=tmp_path)
    assert f"--{option.name}={written}" in lines(script_text(job, SLURM, ""))


@EACH
def test_option_of_a_recipe_reaches_the_script(key: str, option: Option, tmp_path: Path) -> None:
    given, written = WRITTEN.get(key, ("word", "word"))
    path = tmp_path / "mine.toml"
    path.write_text(f'base = "b"\n[job]\ncommand = "true"\n{key} = {given!r}\n')
    bases = {"b": Base("b", "docker", "b:1")}
    if option.in_recipe is None:
        with pytest.raises(WrongInput, match=key):
            load_recipe(path, bases)
        return
    recipe = load_recipe(path, bases)
    job = complete(JobRequest(), name="x", image=Path("x.sif"), recipe=recipe, directory=tmp_path)
    assert f"--{option.name}={written}" in lines(script_text(job, SLURM, ""))
    pages = (Path(__file__).parents[2] / "docs" / "manual.md").read_text()
    rows = [row for row in pages.splitlines() if row.startswith("| `[job] ")]
    assert any(f"`{key}`" in row or f"`[job] {key}`" in row for row in rows), "a row of the manual"


@EACH
def test_option_is_refused_as_a_directive(key: str, option: Option) -> None:
    with pytest.raises(WrongInput) as refusal:
        SLURM.parse_directive(f"--{option.name}=1")
    assert refusal.value.fix == f"Instead: use --{option.name}."


@EACH
def test_default_of_the_user_stays_where_the_job_leaves_the_choice_open(
    key: str, option: Option, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if option.variable is None:
        return
    monkeypatch.setenv(option.variable, "mine")
    for resources, removed in (({}, False), ({key: WRITTEN.get(key, ("word", ""))[0]}, True)):
        request = JobRequest(command=("true",), resources=resources)
        job = complete(request, name="x", image=Path("x.sif"), recipe=None, directory=tmp_path)
        assert (option.variable in sbatch_environment(job)) is removed


def test_gpus_of_a_recipe_may_be_a_number(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "b"\n[job]\ncommand = "true"\ngpus = 0\n')
    recipe = load_recipe(path, {"b": Base("b", "docker", "b:1")})
    job = complete(JobRequest(), name="x", image=Path("x.sif"), recipe=recipe, directory=tmp_path)
    assert job.gpus == Gpus(0)
