"""`--cluster` of commands that judge images, bases, locks and recipes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SITE, Ctk
from tests.inventory.making import distribution, fill, python_files
from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.cli.clusters import cluster_machines, cluster_target, for_machine, impossible_machines, missing_facts
from toolkit.gpu.targets import gpus_of
from toolkit.recipes.model import Base, Bootstrap, Recipe, Target
from toolkit.scheduler.profiles import GpuType, Profile

if TYPE_CHECKING:
    from pathlib import Path


def with_gpus(*gpus: GpuType) -> Profile:
    return replace(TWO_PARTITIONS, gpu_types=gpus)


def test_target_of_a_cluster_has_its_gpus_and_its_oldest_driver() -> None:
    assert cluster_target(TWO_PARTITIONS) == Target(("V100", "A100"), "535.104.05")
    newer = GpuType("h100", "H100", "9.0", driver="570.1")
    assert cluster_target(with_gpus(newer, *TWO_PARTITIONS.gpu_types)).driver == "535.104.05"
    assert cluster_target(with_gpus()) == Target()
    assert cluster_target(TWO_PARTITIONS).origin == "cluster mine"


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        (GpuType("a100"), "a100"),
        (GpuType("volta", "V100"), "V100"),
        (GpuType("volta", "V100", "7.0"), "V100"),
        (GpuType("x", "Unheard 9", "9.0"), "9.0"),
        (GpuType("x", "V100", "9.9"), "9.9"),
        (GpuType("tesla"), None),
    ],
)
def test_gpu_is_named_by_what_ctk_knows_of_it(gpu: GpuType, name: str | None) -> None:
    assert cluster_target(with_gpus(gpu)).gpus == ((name,) if name else ())


def test_each_gpu_type_is_a_machine_with_its_own_driver() -> None:
    found = cluster_machines(with_gpus(GpuType("v", "V100", driver="535.1"), GpuType("h", "H100", driver="570.2")))
    assert [(machine.gpu, machine.driver) for machine in found] == [("V100", "535.1"), ("H100", "570.2")]
    assert len(cluster_machines(with_gpus())) == 1


def test_each_gpu_type_of_a_target_has_its_own_driver() -> None:
    old, new = GpuType("k", "K80", driver="470.57.02"), GpuType("h", "H100", driver="570.26")
    target = cluster_target(with_gpus(old, new))
    assert (target.gpus, target.driver, target.drivers) == (("K80", "H100"), "470.57.02", ("470.57.02", "570.26"))
    assert [gpu.driver for gpu in gpus_of(target)] == ["470.57.02", "570.26"]
    assert impossible_machines(with_gpus(old, new)) == ()


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        (GpuType("v", "V100", driver="590.44.01"), "driver 580 is the last branch for Volta"),
        (GpuType("k", None, "3.7", driver="535.104.05"), "driver 470 is the last branch for Kepler"),
        (GpuType("b", "B200", driver="550.54.14"), "Blackwell needs NVIDIA driver 570.26"),
        (GpuType("a", "A100", driver="590.44.01"), None), (GpuType("m", "MI300X", driver="6.8.5"), None),
    ],
)  # fmt: skip
def test_driver_of_a_profile_that_does_not_know_its_gpu_is_named(gpu: GpuType, said: str | None) -> None:
    found = impossible_machines(with_gpus(gpu))
    assert [said in finding.message for finding in found if said] == [True] * (said is not None)
    assert {finding.code for finding in found} <= {"driver-without-gpu"}


def test_missing_facts_are_named() -> None:
    assert missing_facts(with_gpus(GpuType("v", "V100", driver="535.1"))) == ()
    (found,) = missing_facts(with_gpus(GpuType("tesla")))
    assert "does not say what tesla is and which NVIDIA driver" in found.message
    assert "which GPUs it has and which NVIDIA driver" in missing_facts(with_gpus())[0].message


def test_recipe_keeps_its_architectures(tmp_path: Path) -> None:
    base = Base("b", Bootstrap.DOCKER, "b:1")
    recipe = Recipe("mine", tmp_path / "mine.toml", base, target=Target(("T4",), "470.1", ("aarch64",)))
    assert for_machine(recipe, None) is recipe
    assert for_machine(recipe, Target(("V100",))).target == Target(("V100",), None, ("aarch64",))


@pytest.fixture
def mine(ctk: Ctk) -> Path:
    """A profile with an old driver and an old GPU."""
    directory = ctk.directory / "sbatch/clusters"
    directory.mkdir(parents=True)
    text = 'scheduler = "slurm"\n[[gpu]]\ntype = "tesla"\nmodel = "V100"\ncapability = "7.0"\ndriver = "470.57.02"\n'
    (directory / "mine.toml").write_text(text)
    return directory / "mine.toml"


def test_bases_that_serve_a_cluster(ctk: Ctk, mine: Path) -> None:
    by_cluster = json.loads(ctk("bases", "--cluster", "mine", "--json").stdout)
    by_machine = json.loads(ctk("bases", "--gpu", "V100", "--driver", "470.57.02", "--json").stdout)
    assert by_cluster == by_machine
    assert len(by_cluster["bases"]) < len(json.loads(ctk("bases", "--json").stdout)["bases"])


def test_profile_with_an_impossible_driver_is_named_by_check_and_by_commands(ctk: Ctk, mine: Path) -> None:
    mine.write_text(mine.read_text().replace("470.57.02", "590.44.01"))
    assert "580 is the last branch for Volta" in ctk("cluster", "check", "mine", status=1).stdout
    refused = ctk("bases", "--cluster", "mine", "--framework", "torch", status=1).stderr
    assert "[driver-without-gpu]" in refused
    assert "[no-base-fits]" in refused


def test_new_recipe_for_a_cluster_names_its_machine(ctk: Ctk, mine: Path) -> None:
    (ctk.directory / "train.py").write_text("import torch\n")
    ctk("new", "fresh", "--from", "train.py", "--cluster", "mine")
    text = (ctk.directory / "defs/fresh.toml").read_text()
    assert 'gpu = "V100"' in text or 'gpu = ["V100"]' in text
    assert 'driver = "470.57.02"' in text


def test_new_recipe_for_gpus_with_different_drivers_names_none_that_one_of_them_cannot_have(
    ctk: Ctk, mine: Path
) -> None:
    newer = '[[gpu]]\ntype = "blackwell"\nmodel = "B200"\ncapability = "10.0"\ndriver = "580.65.06"\n'
    mine.write_text(mine.read_text().replace("470.57.02", "535.104.05") + newer)
    ctk("new", "fresh", "--framework", "torch", "--cluster", "mine")
    text = (ctk.directory / "defs/fresh.toml").read_text()
    assert 'base = "pytorch-2.10-cuda12.8"' in text
    assert 'gpu = ["V100", "B200"]' in text
    assert "driver =" not in text


def test_audit_for_a_cluster_is_that_for_its_machine(ctk: Ctk, mine: Path, tmp_path: Path) -> None:
    version = {"torch/version.py": "__version__ = '2.9.0+cu130'\ncuda = '13.0'\n"}
    image = fill(tmp_path / "image", {**python_files(), **distribution("torch", "2.9.0+cu130", SITE, version)})
    by_cluster = ctk("audit", image, "--cluster", "mine", "--json", status=None)
    by_machine = ctk("audit", image, "--gpu", "V100", "--driver", "470.57.02", "--json", status=None)
    assert json.loads(by_cluster.stdout) == json.loads(by_machine.stdout)
    assert by_cluster.status == by_machine.status == 1


def test_lock_for_a_cluster_that_the_base_does_not_serve_is_refused(ctk: Ctk, mine: Path) -> None:
    (ctk.directory / "defs").mkdir()
    (ctk.directory / "defs/new.toml").write_text('base = "pytorch-2.14-cuda13.0"\npackages = ["six"]\n')
    done = ctk("lock", "new", "--cluster", "mine", status=1)
    assert "the base pytorch-2.14-cuda13.0 does not serve cluster mine" in done.stderr
    assert not (ctk.directory / "defs/new.lock.toml").exists()


@pytest.mark.parametrize(
    "words", [("bases", "--gpu", "V100"), ("audit", "x.sif", "--driver", "535.1"), ("new", "x", "--gpu", "V100")]
)
def test_cluster_beside_a_machine_is_refused(ctk: Ctk, mine: Path, words: tuple[str, ...]) -> None:
    assert "--cluster already determines --" in ctk(*words, "--cluster", "mine", status=2).stderr


def test_unknown_cluster_is_answered_with_the_nearest(ctk: Ctk, mine: Path) -> None:
    for words in (("bases",), ("audit", "x.sif"), ("new", "x"), ("script",)):
        done = ctk(*words, "--cluster", "tsubame", status=2)
        assert 'there is no cluster profile "tsubame". Did you mean "tsubame4"?' in done.stderr, words


def test_facts_that_the_profile_lacks_are_named_beside_the_answer(ctk: Ctk) -> None:
    done = ctk("bases", "--cluster", "abci3")
    assert "does not say which NVIDIA driver" in done.stderr
