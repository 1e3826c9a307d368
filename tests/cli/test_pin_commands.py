"""`ctk new`, `add`, `remove`, `lock` and `why` as a user types them: right, or one message and nothing written."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.pins.locks import SMALL
from toolkit.cli.lock import _upgrade
from toolkit.pins.lock.lockfile import write_lock
from toolkit.pins.store import Locks
from toolkit.recipes.catalogue import Catalogue
from toolkit.support.errors import WrongInput
from toolkit.support.paths import shipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ctk


@pytest.fixture
def directory(ctk: Ctk) -> Path:
    """Where `ctk` runs: with a recipe, a script, and a lock."""
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/mine.toml").write_text('base = "debian-12"\npackages = ["numpy"]  # just this\n')
    (ctk.directory / "train.py").write_text("import torch, timm\n")
    write_lock(SMALL, ctk.directory / "defs/small.lock.toml")
    return ctk.directory


def test_a_recipe_from_a_script_can_be_read_and_changed(ctk: Ctk, directory: Path) -> None:
    made = json.loads(ctk("new", "other", "--from", "train.py", "--json").stdout)
    assert (made["schema"], made["base"], made["packages"]) == ("ctk.new/1", "pytorch-2.6", ["timm"])
    ctk("add", "other", "einops", "timm>=1", "--no-lock")
    assert ctk("remove", "other", "einops", "--no-lock").stdout == "Removed: einops.\n"
    text = (directory / "defs/other.toml").read_text()
    assert 'packages = ["timm>=1"]' in text
    assert "other" in ctk("list").stdout


def test_a_script_is_run_as_it_was_named(ctk: Ctk, directory: Path) -> None:
    (directory / "sub").mkdir()
    (directory / "sub/my train ü.py").write_text("import jax, flax\n")
    done = ctk("new", "other", "--from", "sub/my train ü.py", "--base", "pytorch-2.6", "--json")
    made = json.loads(done.stdout)
    assert (made["base"], made["packages"]) == ("pytorch-2.6", ["flax", "jax"])
    assert [finding["code"] for finding in made["findings"]] == ["second-framework"]
    assert 'command = ["python", "sub/my train ü.py"]' in (directory / "defs/other.toml").read_text()


def test_a_shipped_recipe_is_copied_before_it_is_changed(ctk: Ctk, directory: Path) -> None:
    ctk("add", "keras-bert", "pandas", "--no-lock")
    assert '"pydot", "pandas"' in (directory / "defs/keras-bert.toml").read_text()


def test_why_reads_the_only_lock(ctk: Ctk, directory: Path) -> None:
    assert "torch 2.5.1+cu124 is protected" in ctk("why", "torch").stdout
    found = json.loads(ctk("why", "timm", "small", "--json").stdout)
    assert found["schema"] == "ctk.why/1"
    assert ctk("why", "flask", status=1).stderr.endswith("ctk add small flask\n")
    (directory / "defs/small.toml").write_text('base = "debian-12"\npackages = ["flask"]\n')
    done = ctk("why", "flask", status=1)
    assert "`ctk lock small` updates it" in done.stderr, "it was added after the lock was made"


def test_why_reads_the_lock_on_another_base(ctk: Ctk, directory: Path) -> None:
    arguments = ("why", "timm", "mine", "--base", "pytorch-2.6")
    done = ctk(*arguments, status=None)
    assert (done.status, done.stderr.splitlines()[-1]) == (2, "ctk lock mine --base pytorch-2.6")
    catalogue = Catalogue(directory / "defs", shipped("defs"))
    recipe = catalogue.recipe("mine", base=catalogue.bases()["pytorch-2.6"])
    path = Locks.of(catalogue, directory.parent / "area").path(recipe)
    path.parent.mkdir(parents=True)
    write_lock(SMALL, path)
    assert "timm 1.0.3 is added: timm ← the recipe." in ctk(*arguments).stdout
    assert not (directory / "defs/mine.lock.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("new", "Bad Name"), 2, "is not a valid recipe name"),
        (("new", "bases", "--base", "debian-12"), 2, "`bases` and names ending in"),
        (("new", "mine", "--base", "debian-12"), 2, "already exists"),
        (("new", "x"), 2, "no base could be inferred"),
        (("new", "x", "--base", "debian-13"), 2, 'Did you mean "debian-12"'),
        (("new", "x", "--from", "nothing.py"), 2, "nothing.py does not exist"),
        (("new", "x", "--from", "defs/mine.toml"), 2, "does not read defs/mine.toml"),
        (("add", "mine", "a b"), 2, "not a package requirement"),
        (("add", "mine"), 2, "no packages to add"),
        (("add", "mine", "apex"), 2, "apex on PyPI is a toolkit for the web framework Pyramid"),
        (("add", "mine", "segment_anything"), 2, "no PyPI package provides"),
        (("add", "mine", "pandas=2"), 2, "Write pandas==2"),
        (("add", "mine", "https://x.org/a-1-py3-none-any.whl"), 2, "Write a @ https://x.org/a-1-py3-none-any.whl"),
        (("add", "mine", "gcc;id", "--apt"), 2, "not the name of a Debian package"),
        (("add", "mine", "-r", "none.txt"), 2, "none.txt"),
        (("add", "mine", "-r", "empty.txt", "timm"), 2, "empty.txt has no package that a recipe can install"),
        (("add", "mine", "-r", "useless.txt"), 2, "left out: pandas>=2<3"),
        (("add", "mine", "-r", "useless.txt"), 2, "Write pandas>=2,<3: a comma is missing"),
        (("new", "x", "--from", "empty.txt"), 2, "empty.txt has no package"),
        (("new", "x", "--from", "useless.txt"), 2, "left out: --pre (a pip option)"),
        (("new", "x", "--from", "environment.yml"), 2, "environment.yml has no package"),
        (("new", "x", "--from", "pyproject.toml"), 2, "pyproject.toml has no package"),
        (("add", "mine", "pandas>=2<3"), 2, "Write pandas>=2,<3: a comma is missing"),
        (("add", "mine", "-r", "train.py", "--apt"), 2, "leave out --apt or -r"),
        (("remove", "mine", "gcc", "--apt"), 2, "does not list gcc"),
        (("def", "mine", "--locked"), 1, "has no lock"),
        (("def", "mine", "--locked", "--base", "debian-12"), 2, "leave out --base"),
        (("add", "nobody", "numpy"), 2, "no recipe"),
        (("remove", "mine", "nunpy"), 2, 'Did you mean "numpy"'),
        (("remove", "keras-bert", "nothing"), 2, "does not list"),
        (("lock", "nobody"), 2, "no recipe"),
        (("lock", "mine", "numpy"), 2, "--upgrade"),
        (("lock", "mine", "--exclude-newer", "yesterday"), 2, "should be a date such as"),
        (("lock", "mine", "--exclude-newer", "2021-13-45"), 2, "should be a date such as"),
        (("lock", "mine", "--check"), 1, "ctk lock mine"),
        (("lock", "mine", "--export", "lock.toml"), 2, "pylock.NAME.toml"),
        (("lock", "mine", "--export", "pylock.toml", "--check"), 2, "leave out --export"),
        (("lock", "mine", "--force"), 2, "--force requires --export"),
        (("why", "torch", "mine"), 2, "no lock here"),
    ],
)
def test_wrong_input_one_message_nothing_written(
    ctk: Ctk, directory: Path, arguments: tuple[str, ...], status: int, words: str
) -> None:
    (directory / "empty.txt").write_text("# nothing yet\n")
    (directory / "useless.txt").write_text("--pre\npandas>=2<3\n")
    (directory / "environment.yml").write_text("name: x\ndependencies: [python=3.11]\n")
    (directory / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\n')
    before = {path: path.read_bytes() for path in directory.rglob("*.toml")}
    done = ctk(*arguments, status=status)
    assert words in done.stderr
    assert done.stderr.count("Error:") == 1
    assert {path: path.read_bytes() for path in directory.rglob("*.toml")} == before


def test_a_pipe_in_the_place_of_a_recipe_holds_nobody_up(ctk: Ctk, directory: Path) -> None:
    os.mkfifo(directory / "defs/pipe.toml")
    for arguments in (("list",), ("lock", "pipe"), ("add", "pipe", "six"), ("add", "--apt", "pipe", "gcc")):
        done = ctk(*arguments, status=None)
        assert (done.status, "pipe.toml is a pipe" in done.stderr) == (2, True), done.stderr


def test_only_what_the_lock_adds_can_be_upgraded() -> None:
    chosen = _upgrade(SMALL, ["Timm"])
    assert [chosen.keeps(name) for name in ("timm", "keras-bert")] == [False, True]
    assert _upgrade(SMALL, []).everything
    with pytest.raises(WrongInput, match="cannot upgrade tim: the lock"):
        _upgrade(SMALL, ["tim"])


def test_a_lock_that_was_edited_is_not_taken_for_good(ctk: Ctk, directory: Path) -> None:
    path = directory / "defs/small.lock.toml"
    path.write_text(path.read_text().replace("1.0.3", "1.0.4"))
    done = ctk("why", "timm", status=2)
    assert "edited by hand" in done.stderr


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


def test_a_name_that_is_something_else_on_the_index_is_said(ctk: Ctk, directory: Path) -> None:
    done = ctk("add", "mine", "pytorch>=2", "--no-lock")
    assert "pytorch on PyPI is a placeholder" in done.stdout
    assert "use torch" in done.stdout
    assert "Added: torch>=2." in done.stdout
    (directory / "list.txt").write_text("pytorch>=2\napex\n")
    made = json.loads(ctk("new", "listed", "--from", "list.txt", "--json").stdout)
    assert (made["base"], made["packages"]) == ("pytorch-2.6", ["apex"])
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


def test_code_of_tensorflow_1_gets_no_recipe_with_tensorflow_2(ctk: Ctk, directory: Path) -> None:
    (directory / "old.py").write_text("import tensorflow as tf\n\nsession = tf.Session()\n")
    done = ctk("new", "old", "--from", "old.py", status=1)
    assert "old.py:3: tensorflow.Session is part of TensorFlow 1" in done.stderr
    assert "1.15.5-gpu-py3" in done.stderr
    assert not (directory / "defs/old.toml").exists()


def test_a_list_is_added_without_what_the_base_brings(ctk: Ctk, directory: Path) -> None:
    (directory / "list.txt").write_text("torch==2.6.0\nsklearn\nnumpy<2\n-e .\n")
    ctk("new", "ours", "--base", "pytorch-2.6")
    done = json.loads(ctk("add", "ours", "-r", "list.txt", "einops", "--no-lock", "--json").stdout)
    assert done["added"] == ["einops", "scikit-learn", "numpy<2"]
    assert {finding["code"] for finding in done["findings"]} >= {"left-out", "import-name"}
    assert done["lock_change"] is None


def test_debian_packages_are_added_and_no_lock_is_made(ctk: Ctk, directory: Path) -> None:
    assert ctk("add", "--apt", "mine", "gcc", "python3-dev").stdout == "Added: gcc, python3-dev.\n"
    assert 'apt = ["gcc", "python3-dev"]' in (directory / "defs/mine.toml").read_text()
    assert not (directory / "defs/mine.lock.toml").exists()
