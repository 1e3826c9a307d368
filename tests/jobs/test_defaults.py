"""The command line first, then the recipe, then what the directory holds, else a question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit.jobs.advice import advise_on_image
from toolkit.jobs.defaults import JobRequest, choose_image, complete
from toolkit.recipes.model import Base, JobDefaults, Recipe
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from toolkit.jobs.model import Job

DEFAULTS = JobDefaults(("python", "main.py"), {"gpus": 1, "time": "4:00:00", "mem": "8G", "nodes": 2}, binds=("/data",))


def recipe(job: JobDefaults = DEFAULTS, name: str = "mine") -> Recipe:
    return Recipe(name=name, path=Path("defs/mine.toml"), base=Base("b", "docker", "b:1"), job=job)


def job_of(request: JobRequest, directory: Path, of: Recipe | None = None, image: str = "trial.sif") -> Job:
    return complete(request, name="x", image=Path(image), recipe=of, directory=directory, userns=False)


def test_the_recipe_fills_in_what_the_command_line_leaves_open(tmp_path: Path) -> None:
    job = job_of(JobRequest(resources={"time": "30"}, binds=("/scratch", "/data")), tmp_path, recipe())
    assert (job.command, job.gpus, job.mem, job.nodes) == (("python", "main.py"), Gpus(1), "8G", 2)
    assert job.time == 1800
    assert job.binds == ("/scratch", "/data")


def test_modules_of_the_command_line_are_loaded_before_those_of_the_recipe(tmp_path: Path) -> None:
    given = recipe(JobDefaults(("true",), modules=("gcc", "cuda/12.4")))
    assert job_of(JobRequest(modules=("openmpi", "gcc")), tmp_path, given).modules == ("openmpi", "gcc", "cuda/12.4")


@pytest.mark.parametrize(
    ("ntasks", "resources", "each"),
    [(4, {}, 4), (8, {"nodes": 2}, 4), (4, {"nodes": 2, "tasks_per_node": 2}, 2), (None, {"nodes": 2}, None)],
)
def test_processes_of_the_whole_job_are_spread_over_its_nodes(
    tmp_path: Path, ntasks: int | None, resources: dict[str, int], each: int | None
) -> None:
    job = job_of(JobRequest(("true",), resources=resources, ntasks=ntasks), tmp_path)
    assert job.tasks_per_node == each


@pytest.mark.parametrize(
    ("ntasks", "each", "message"),
    [
        (5, None, "--ntasks 5 cannot be spread evenly over --nodes 2"),
        (1, None, "--ntasks 1 cannot be spread evenly over --nodes 2"),
        (0, None, "--ntasks should be a number of at least 1"),
        (8, 2, "--ntasks 8 contradicts --ntasks-per-node 2 on --nodes 2"),
    ],
)
def test_processes_that_do_not_fit_the_nodes_are_refused(
    tmp_path: Path, ntasks: int, each: int | None, message: str
) -> None:
    with pytest.raises(WrongInput) as refusal:
        job_of(JobRequest(("true",), {"nodes": 2, "tasks_per_node": each}, ntasks=ntasks), tmp_path)
    assert refusal.value.message.startswith(message)


def test_no_gpus_on_purpose_beats_the_recipe(tmp_path: Path) -> None:
    assert job_of(JobRequest(resources={"gpus": "0"}), tmp_path, recipe()).gpus == Gpus(0)


def test_a_site_s_own_way_of_asking_for_gpus_replaces_the_recipe_s_number(tmp_path: Path) -> None:
    job = job_of(JobRequest(directives=("--gres=gpu:tesla:1",)), tmp_path, recipe())
    assert job.gpus is None
    assert job.uses_gpu


def test_without_a_recipe_train_py_is_the_command(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="no command for the job"):
        job_of(JobRequest(), tmp_path)
    (tmp_path / "train.py").touch()
    assert job_of(JobRequest(), tmp_path).command == ("python", "train.py")


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (JobDefaults(("true",), {"time": "banana"}), "defs/mine.toml: job.time"),
        (JobDefaults(("true",), {"gpus": "many"}), "defs/mine.toml: job.gpus"),
        (JobDefaults(command=("true",), binds=("a,b",)), "defs/mine.toml: job.binds"),
        (JobDefaults(command=("true",), modules=("cuda; rm -r x",)), "defs/mine.toml: job.modules"),
    ],
)
def test_a_recipe_s_wrong_value_is_named_with_its_file_and_key(tmp_path: Path, wrong: JobDefaults, where: str) -> None:
    with pytest.raises(WrongInput) as refusal:
        job_of(JobRequest(), tmp_path, recipe(wrong))
    assert refusal.value.message.startswith(where)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("trial.sif", "./trial.sif"),
        ("-x.sif", "./-x.sif"),
        ("docker:x.sif", "./docker:x.sif"),
        ("images/./a b.sif", "./images/a b.sif"),
        ("/apps/trial.sif", "/apps/trial.sif"),
    ],
)
def test_an_image_is_written_so_that_the_runtime_takes_it_for_a_file(tmp_path: Path, given: str, written: str) -> None:
    assert job_of(JobRequest(command=("true",)), tmp_path, image=given).image == written


def test_an_image_outside_is_written_as_an_absolute_path(tmp_path: Path) -> None:
    job = job_of(JobRequest(command=("true",)), tmp_path / "job", image="../trial.sif")
    assert job.image == f"{tmp_path}/trial.sif"


def test_the_image_is_the_recipe_s_else_the_only_one_with_a_warning(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="there is no image here") as refusal:
        choose_image(None, "mine", recipe(), tmp_path)
    assert "ctk build mine" in (refusal.value.fix or "")
    (tmp_path / "other.sif").touch()
    other = choose_image(None, "mine", recipe(), tmp_path)
    assert other == tmp_path / "other.sif"
    assert [finding.code for finding in advise_on_image(other, recipe(), given=False)] == ["image-of-another-name"]
    assert advise_on_image(other, recipe(), given=True) == ()
    (tmp_path / "mine.sif").touch()
    own = choose_image(None, "x", recipe(), tmp_path)
    assert own == tmp_path / "mine.sif"
    assert advise_on_image(own, recipe(), given=False) == ()
    assert choose_image(Path("given.sif"), "mine", recipe(), tmp_path) == Path("given.sif")


def test_without_a_recipe_the_image_is_the_only_one_or_the_one_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(WrongInput, match="there is no image here"):
        choose_image(None, "x", None, tmp_path)
    (tmp_path / "a.sif").touch()
    assert choose_image(None, "x", None, tmp_path) == tmp_path / "a.sif"
    (tmp_path / "b.sif").touch()
    with pytest.raises(WrongInput, match=r"a\.sif, b\.sif"):
        choose_image(None, "x", None, tmp_path)
    assert choose_image(None, "b", None, tmp_path) == tmp_path / "b.sif"
