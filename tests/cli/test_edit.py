"""`ctk add` and `ctk remove` as a user types them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.pins.small_index import serve_index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Ctk


def test_a_shipped_recipe_is_copied_before_it_is_changed(ctk: Ctk, directory: Path) -> None:
    ctk("add", "keras-bert", "pandas", "--no-lock")
    assert '"pydot", "pandas"' in (directory / "defs/keras-bert.toml").read_text()


def test_a_pipe_in_the_place_of_a_recipe_holds_nobody_up(ctk: Ctk, directory: Path) -> None:
    os.mkfifo(directory / "defs/pipe.toml")
    for arguments in (("list",), ("lock", "pipe"), ("add", "pipe", "six"), ("add", "--apt", "pipe", "gcc")):
        done = ctk(*arguments, status=None)
        assert (done.status, "pipe.toml is not a regular file" in done.stderr) == (2, True), done.stderr


def test_names_of_imports_are_translated(ctk: Ctk, directory: Path) -> None:
    done = ctk("add", "mine", "cv2", "PIL>=10", "sklearn[alldeps]", "numpy", "--no-lock")
    assert done.stdout.splitlines() == [
        "· cv2 is imported from the package opencv-python-headless",
        "· PIL is imported from the package pillow",
        "· sklearn is imported from the package scikit-learn",
        "Added: opencv-python-headless, pillow>=10, scikit-learn[alldeps].",
    ]
    assert "Removed: pillow>=10." in ctk("remove", "mine", "PIL", "--no-lock").stdout
    assert ctk("add", "mine", "cv2", "--no-lock").stdout.endswith("Nothing to do: mine already has them.\n")
    ctk("remove", "mine", "cv2", "--no-lock")
    ctk("add", "mine", "opencv-python", "--no-lock")
    assert "Removed: opencv-python." in ctk("remove", "mine", "cv2", "--no-lock").stdout
    assert "imported from the package pillow" in ctk("why", "PIL", "small", status=1).stderr


def test_a_misspelt_name_is_refused_unless_it_is_meant(ctk: Ctk, directory: Path) -> None:
    before = (directory / "defs/mine.toml").read_text()
    done = ctk("add", "mine", "pandas", "sklern>=1", "--no-lock", status=2)
    assert "did you mean scikit-learn?" in done.stderr
    assert "ctk add mine scikit-learn" in done.stderr
    assert "ctk add --exact-names mine 'sklern>=1'" in done.stderr
    assert (directory / "defs/mine.toml").read_text() == before
    assert "Added: sklern>=1." in ctk("add", "--exact-names", "mine", "sklern>=1", "--no-lock").stdout
    # What the recipe has already is meant.
    assert "Added: sklern>=2." in ctk("add", "mine", "sklern>=2", "--no-lock").stdout


def test_a_name_that_is_something_else_on_the_index_is_said(ctk: Ctk, directory: Path) -> None:
    done = ctk("add", "mine", "pytorch>=2", "--no-lock")
    assert "pytorch on PyPI is a placeholder" in done.stdout
    assert "use torch" in done.stdout
    assert "Added: torch>=2." in done.stdout
    (directory / "list.txt").write_text("pytorch>=2\napex\n")
    made = json.loads(ctk("new", "listed", "--from", "list.txt", "--json").stdout)
    assert (made["base"], made["packages"]) == ("pytorch-2.10-cuda12.8", ["apex"])
    assert [finding["code"] for finding in made["findings"]] == ["another-package", "another-package"]


def test_first_gpu_framework_brings_a_gpu_for_jobs(ctk: Ctk, directory: Path) -> None:
    path = directory / "defs/plain.toml"
    ctk("new", "plain", "--base", "debian-12")
    assert "gpus = 0" in path.read_text()
    assert "gpus" not in ctk("add", "plain", "numpy", "onnxruntime", "tensorflow-cpu", "--no-lock").stdout
    assert "gpus = 0" in path.read_text()
    done = ctk("add", "plain", "pytorch", "--no-lock")
    assert "torch uses a GPU: [job] gpus was changed from 0 to 1" in done.stdout
    assert "gpus = 1" in path.read_text()
    # What a user sets afterwards stays.
    path.write_text(path.read_text().replace("gpus = 1", "gpus = 0  # on purpose"))
    ctk("add", "plain", "jax", "--no-lock")
    assert "gpus = 0  # on purpose" in path.read_text()
    (directory / "list.txt").write_text("tensorflow-cpu\n")
    ctk("new", "listed", "--from", "list.txt", "--base", "debian-12")
    assert "gpus = 0" in (directory / "defs/listed.toml").read_text()


def test_a_second_framework_is_said_when_it_is_added(ctk: Ctk, directory: Path) -> None:
    ctk("new", "ours", "--base", "pytorch-2.6")
    done = json.loads(ctk("add", "ours", "jax", "timm", "--no-lock", "--json").stdout)
    assert done["added"] == ["jax", "timm"]
    assert [finding["code"] for finding in done["findings"]] == ["second-framework"]
    alone = json.loads(ctk("add", "ours", "onnxruntime-gpu", "--no-lock", "--json").stdout)
    assert alone["findings"] == []


def test_a_list_is_added_without_what_the_base_brings(ctk: Ctk, directory: Path) -> None:
    (directory / "list.txt").write_text("torch==2.6.0\nsklearn\nnumpy<2\n-e .\n")
    ctk("new", "ours", "--base", "pytorch-2.6")
    done = json.loads(ctk("add", "ours", "-r", "list.txt", "einops", "--no-lock", "--json").stdout)
    assert done["added"] == ["einops", "scikit-learn", "numpy<2"]
    assert {finding["code"] for finding in done["findings"]} >= {"left-out", "import-name"}
    assert done["lock_changes"] == {}


def test_debian_packages_are_added_and_no_lock_is_made(ctk: Ctk, directory: Path) -> None:
    assert ctk("add", "--apt", "mine", "gcc", "python3-dev").stdout == "Added: gcc, python3-dev.\n"
    assert 'apt = ["gcc", "python3-dev"]' in (directory / "defs/mine.toml").read_text()
    assert not (directory / "defs/mine.lock.toml").exists()


NEEDED = [f"needed{number}" for number in range(12)]
PACKAGES = {
    "numpy": {"1.24.3": [], "2.4.0": []},
    "pandas": {"2.0.2": ["numpy", *NEEDED], "3.0.0": ["numpy", *NEEDED]},
    "holder": {"1.0": ["numpy<2"]},
    **{name: {"1.0": [], "2.0": []} for name in NEEDED},
}


@pytest.fixture
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_index(tmp_path_factory.mktemp("index"), PACKAGES) as address:
        yield address


@pytest.mark.index
def test_list_and_lock_and_back(ctk: Ctk, directory: Path, index: str) -> None:
    """A `pip freeze` keeps its versions, also where the recipe has the packages; `remove` undoes `add`."""
    lines = ["pandas==2.0.2", "numpy==1.24.3", "absent==9", *(f"{name}==1.0" for name in NEEDED)]
    (directory / "freeze.txt").write_text("\n".join(lines))
    environment = {"UV_DEFAULT_INDEX": index}
    made = json.loads(ctk("new", "rep", "--from", "freeze.txt", "--json", **environment).stdout)
    assert made["packages"] == ["pandas"]
    assert "not-on-index" in [finding["code"] for finding in made["findings"]]
    assert len(made["prefer"]) == 14
    shown = ctk("lock", "rep", **environment).stdout
    assert "pandas\t2.0.2\trecipe" in shown
    assert "14 packages in the version of the list, though newer ones exist." in shown

    ctk("new", "rep2", "--base", "debian-12")
    ctk("add", "rep2", "pandas", **environment)
    added = ctk("add", "rep2", "-r", "freeze.txt", **environment)
    assert "Nothing to do" not in added.stdout
    assert "Preferred from now on ([lock] prefer): " in added.stdout
    assert "~ numpy 2.4.0 -> 1.24.3" in added.stderr
    again = ctk("add", "rep2", "-r", "freeze.txt", **environment)
    assert "Nothing to do: rep2 already has them." in again.stdout

    ctk("new", "rep3", "--base", "debian-12")
    ctk("add", "rep3", "pandas", **environment)
    held = ctk("add", "rep3", "holder", **environment)
    assert "~ numpy 2.4.0 -> 1.24.3 (holder 1.0 requires numpy<2)" in held.stderr
    removed = ctk("remove", "rep3", "holder", **environment)
    assert "~ numpy 1.24.3 -> 2.4.0" in removed.stderr
    ctk("add", "rep3", "-r", "freeze.txt", "--keep-versions", "--no-lock", **environment)
    assert '"numpy==1.24.3"' in (directory / "defs/rep3.toml").read_text().partition("[lock]")[0]


def test_versions_are_kept_only_of_a_list(ctk: Ctk) -> None:
    assert "name it with -r" in ctk("add", "mine", "six", "--keep-versions", status=2).stderr
    assert "name it with --from" in ctk("new", "other", "--base", "debian-12", "--keep-versions", status=2).stderr
