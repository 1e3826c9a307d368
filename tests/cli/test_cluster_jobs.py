"""Jobs on clusters: a site that no file of ctk knows, limits, estimates, and hosts without any program."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import SITE, TORCH, Ctk
from tests.inventory.making import distribution, fill, python_files

if TYPE_CHECKING:
    from pathlib import Path

# A site of nobody: GPUs by a constraint and a count of its own, a group that is required and named at submission, its
# own module system, nodes without the internet behind a proxy.
STRANGE = """
scheduler = "slurm"
required = ["account", "time"]
arguments = ["--wckey={account}"]
internet = false
proxy = "http://proxy.site.example:8080"
no_proxy = [".site.example"]
modules = ["site/2026a", "apptainer-nv/1.4"]
module_setup = "@SETUP@"
binds = ["@SCRATCH@"]
price_unit = "credits"

[request]
gpus = "--licenses=accel-{type}@site:{total} --constraint=has_{type}"
account = "--comment=group:{account}"

[[gpu]]
type = "quokka"
model = "V100"
capability = "7.0"
driver = "535.104.05"

[[partition]]
name = "swift"
default = true
max_time = "0:30:00"
gpus_per_node = 3
gpu_types = ["quokka"]
price_per_node_hour = 4
"""
TRAIN = "from transformers import AutoModel\nAutoModel.from_pretrained('bert-base-uncased')\n"


@pytest.fixture
def site(ctk: Ctk, tmp_path: Path) -> Path:
    """The directory of a job, with an image for GPUs, a program, and the profile of a strange site."""
    (tmp_path / "scratch").mkdir()
    setup = tmp_path / "setup-modules.sh"
    setup.write_text('module() { echo "MODULE $*"; PATH=$PATH:' + str(tmp_path / "modules") + "; }\n")
    runtime = tmp_path / "modules/apptainer"
    runtime.parent.mkdir()
    runtime.write_text('#!/bin/sh\necho "RUNTIME $*"\n')
    runtime.chmod(0o755)
    clusters = ctk.directory / "sbatch/clusters"
    clusters.mkdir(parents=True)
    text = STRANGE.replace("@SETUP@", str(setup)).replace("@SCRATCH@", str(tmp_path / "scratch"))
    (clusters / "outback.toml").write_text(text)
    fill(ctk.directory / "trial.sif", {**python_files(), **distribution("torch", "2.13.0+cpu", SITE, TORCH)})
    (ctk.directory / "trial.sif/.singularity.d").mkdir()
    (ctk.directory / "train.py").write_text(TRAIN)
    return ctk.directory


OUTBACK = ("sbatch", "-J", "x", "--cluster", "outback", "--force", "--no-gpu-gate")


def test_site_that_no_file_of_ctk_knows_gets_its_script(ctk: Ctk, site: Path, tmp_path: Path) -> None:
    done = ctk(*OUTBACK, "--account", "dingo", "--time", "20", "--gpus", "2", "python3.11", "train.py")
    text = (site / "x.sbatch").read_text()
    lines = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert lines == [
        "#SBATCH --job-name=x",
        "#SBATCH --output=%x-%j.log",
        "#SBATCH --open-mode=append",
        "#SBATCH --time=00:20:00",
        "#SBATCH --licenses=accel-quokka@site:2 --constraint=has_quokka",
        "#SBATCH --comment=group:dingo",
    ]
    subprocess.run(["shellcheck", site / "x.sbatch"], check=True)
    assert "the program loads model bert-base-uncased [downloads-first]" in done.stderr
    assert (
        """-c 'from huggingface_hub import snapshot_download; snapshot_download("bert-base-uncased")'""" in done.stderr
    )

    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "x", "SLURM_SUBMIT_DIR": str(site), "PATH": "/usr/bin:/bin"}
    only = tmp_path / "only"  # of the programs of this machine, no runtime
    only.mkdir()
    for name in ("bash", "sh", "date", "mkdir", "ln", "rm", "stat", "cat", "env"):
        (only / name).symlink_to(f"/usr/bin/{name}")
    environment["PATH"] = str(only)
    ran = subprocess.run(
        ["/bin/bash", site / "x.sbatch"], cwd=site, env=environment, capture_output=True, text=True, check=False
    )
    output = ran.stdout + ran.stderr
    assert ran.returncode == 0, output
    assert output.index("MODULE load site/2026a") < output.index("MODULE load apptainer-nv/1.4")
    (line,) = [line for line in output.splitlines() if line.startswith("RUNTIME")]
    for word in (
        f"--bind {tmp_path / 'scratch'}",
        "HF_HUB_OFFLINE=1",
        "https_proxy=http://proxy.site.example:8080",
        "no_proxy=.site.example",
        "python3.11 train.py",
    ):
        assert word in line


def test_required_group_goes_to_the_command_that_submits(ctk: Ctk, site: Path, tmp_path: Path) -> None:
    sbatch = tmp_path / "fake/sbatch"
    sbatch.parent.mkdir()
    sbatch.write_text('#!/bin/sh\necho "$*" > "$0.words"\necho 42\n')
    sbatch.chmod(0o755)
    options = ("--account", "dingo", "--time", "20", "--gpus", "0", "--submit", "python3.11", "train.py")
    done = ctk(*OUTBACK, *options, PATH=f"{sbatch.parent}:{os.environ['PATH']}")
    assert "Submitted as job 42" in done.stdout
    assert (sbatch.parent / "sbatch.words").read_text().split()[:2] == ["--parsable", "--wckey=dingo"]


def test_what_the_site_requires_is_asked_for_by_name_and_nothing_is_written(ctk: Ctk, site: Path) -> None:
    before = sorted(path.name for path in site.iterdir())
    done = ctk("sbatch", "-J", "x", "--cluster", "outback", "--gpus", "1", status=2)
    assert "cluster outback refuses a job without --account" in done.stderr
    assert "cluster outback refuses a job without --time" in done.stderr
    assert "Add --account NAME." in done.stderr
    assert sorted(path.name for path in site.iterdir()) == before


def test_limit_of_the_site_is_named_with_the_nearest_request(ctk: Ctk, site: Path) -> None:
    options = ("--cluster", "outback", "--account", "dingo", "--gpus", "0", "--time", "1:00:00")
    done = ctk("sbatch", "-J", "x", *options, "python3.11", "train.py", status=2)
    assert "partition swift allows 30 minutes, and the job asks for 1 hour" in done.stderr
    assert "Nearest: --time 00:30:00" in done.stderr
    forced = ctk("sbatch", "-J", "x", *options, "--force", "python3.11", "train.py")
    assert "! partition swift allows 30 minutes" in forced.stderr
    assert (site / "x.sbatch").exists()


def test_image_is_judged_for_the_gpus_of_the_cluster(ctk: Ctk, site: Path) -> None:
    options = ("--cluster", "outback", "--account", "dingo", "--gpus", "1", "--time", "20")
    done = ctk("sbatch", "-J", "x", *options, "python3.11", "train.py", status=1)
    assert "image-cannot-use-gpu" in done.stderr


def test_estimate_writes_nothing(ctk: Ctk, site: Path) -> None:
    options = ("--cluster", "outback", "--account", "dingo", "--gpus", "0", "--time", "30", "--array", "0-3")
    done = ctk("sbatch", "-J", "x", *options, "--estimate", "python3.11", "train.py")
    assert done.stdout.splitlines() == [
        "At most 2 node-hours: 4 tasks x 1 node x 30 minutes (the job's time limit)",
        "At most 8 credits",
    ]
    assert not (site / "x.sbatch").exists()
    done = ctk("sbatch", "-J", "x", *options, "--estimate", "--submit", "--", "true", status=2)
    assert "--estimate writes and submits nothing" in done.stderr
    found = json.loads(ctk("sbatch", "-J", "x", *options, "--estimate", "--json", "--", "true").stdout)
    assert (found["schema"], found["price"], found["price_unit"]) == ("ctk.estimate/1", 8, "credits")


def test_recipe_user_and_site_choose_the_cluster(ctk: Ctk, site: Path, tmp_path: Path) -> None:
    (site / "defs").mkdir()
    (site / "defs/mine.toml").write_text('base = "debian-12"\n[job]\ncommand = "true"\ncluster = "outback"\n')
    image = ("--image", "trial.sif", "--gpus", "0")
    assert "cluster outback refuses" in ctk("sbatch", "-J", "mine", *image, status=2).stderr
    settings = tmp_path / "home/.config/ctk/settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('cluster = "outback"\n')
    assert "cluster outback refuses" in ctk("sbatch", "-J", "x", *image, status=2).stderr
    settings.write_text('cluster = "gone"\n')
    assert (
        f'{settings}: cluster: there is no cluster profile "gone"' in ctk("sbatch", "-J", "x", *image, status=2).stderr
    )


def test_cluster_with_another_scheduler_names_the_command(ctk: Ctk, site: Path) -> None:
    done = ctk("sbatch", "-J", "x", "--cluster", "tsubame4", "--gpus", "0", status=2)
    assert "this writes a script for Slurm, and cluster tsubame4 has Grid Engine" in done.stderr
    assert "Use `ctk qsub --cluster tsubame4`." in done.stderr
    done = ctk("qsub", "-N", "x", "--cluster", "outback", status=2)
    assert "has Slurm, and ctk qsub writes for Grid Engine and PBS" in done.stderr
    assert "Use `ctk sbatch --cluster outback`." in done.stderr


def test_default_cluster_with_another_scheduler_is_left_out_with_a_note(ctk: Ctk, site: Path, tmp_path: Path) -> None:
    image = ("--image", "trial.sif", "--gpus", "0", "--force", "--json")
    settings = tmp_path / "home/.config/ctk/settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('cluster = "abci3"\n')
    (site / "defs").mkdir()
    (site / "defs/mine.toml").write_text('base = "debian-12"\n[job]\ncommand = "true"\ncluster = "tsubame4"\n')
    for words, where, title, command in (
        (("sbatch", "-J", "x"), f"abci3 ({settings})", "OpenPBS", "ctk qsub --cluster abci3"),
        (("sbatch", "-J", "mine"), "tsubame4 (", "Grid Engine", "ctk qsub --cluster tsubame4"),
        (("script", "-J", "x", "--scheduler", "torque"), "abci3 (", "OpenPBS", "ctk qsub --cluster abci3"),
    ):
        done = ctk(*words, *image, "--", "true")
        (note,) = [found for found in json.loads(done.stdout)["findings"] if found["code"] == "wrong-scheduler"]
        assert note["severity"] == "info"
        assert f"your default cluster {where}" in note["message"]
        assert f"has {title}: its limits and requests do not apply" in note["message"]
        assert f"`{command}`" in note["fix"]
    settings.write_text('cluster = "outback"\n')
    done = ctk("qsub", "-N", "x", "--scheduler", "sge", *image, "--", "true")
    assert "`ctk sbatch --cluster outback`" in done.stdout
    (tmp_path / "nothing").mkdir()
    done = ctk("qsub", "-N", "x", *image, "--", "true", status=2, PATH=str(tmp_path / "nothing"))
    assert f"Your default cluster outback ({settings}) has Slurm: use `ctk sbatch`." in done.stderr


def test_resource_types_of_tsubame_and_abci(ctk: Ctk, site: Path) -> None:
    common = ("--gpus", "8", "--time", "1:00:00", "--force", "--dry-run")
    words = ("script", "-J", "x", "--cluster", "tsubame4", "--partition", "node_f", "--account", "tga-x")
    lines = ctk(*words, *common, "python3.11", "train.py").stdout.splitlines()
    assert "#$ -l node_f=2" in lines
    assert "#$ -l h_rt=1:00:00" in lines
    assert not [line for line in lines if line.startswith("#$ -g")]
    words = ("script", "-J", "x", "--cluster", "abci3", "--partition", "rt_HF", "--account", "grp")
    lines = ctk(*words, *common, "python3.11", "train.py").stdout.splitlines()
    assert {"#PBS -q rt_HF", "#PBS -l select=1:mpiprocs=1", "#PBS -P grp", "#PBS -l walltime=1:00:00"} <= set(lines)


# ---- Hosts without a container runtime and without a scheduler


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """A PATH without any program."""
    (tmp_path / "nothing").mkdir()
    return {"PATH": str(tmp_path / "nothing")}


def test_scripts_are_written_without_runtime_and_scheduler(ctk: Ctk, site: Path, bare: dict[str, str]) -> None:
    ctk("sbatch", "-J", "a", "--gpus", "0", "--", "python3.11", "train.py", **bare)
    assert "#SBATCH --job-name=a" in (site / "a.sbatch").read_text()
    ctk("qsub", "-N", "b", "--scheduler", "sge", "--gpus", "0", "--", "python3.11", "train.py", **bare)
    assert "#$ -N b" in (site / "b.sge").read_text()
    for name, options in (("c", ("--cluster", "pbs")), ("t", ("--scheduler", "torque"))):
        ctk("qsub", "-N", name, *options, "--gpus", "0", "--", "python3.11", "train.py", **bare)
        assert f"#PBS -N {name}" in (site / f"{name}.pbs").read_text()
    done = ctk("sbatch", "-J", "d", "--gpus", "0", "--cluster", "lab", "--estimate", "--", "python3.11", "x.py", **bare)
    assert done.stdout.startswith("At most 1 node-hour: 1 node x 1 hour (the default of partition cpu)")
    assert (
        "ctk lab up"
        in ctk("sbatch", "-J", "a", "--gpus", "0", "--submit", "--", "python3.11", "x.py", status=3, **bare).stderr
    )


def test_image_is_audited_without_runtime_and_scheduler(ctk: Ctk, site: Path, bare: dict[str, str]) -> None:
    done = ctk("audit", "trial.sif", "--cluster", "outback", status=1, **bare)
    assert done.stdout.endswith("Verdict: cpu-only\n")


@pytest.mark.index
def test_lock_is_made_without_runtime_and_scheduler(ctk: Ctk, site: Path, bare: dict[str, str]) -> None:
    (site / "defs").mkdir()
    (site / "defs/mine.toml").write_text('base = "python-3.12"\npackages = ["six==1.17.0"]\n')
    ctk("lock", "mine", "--cluster", "outback", **bare)
    assert "six" in (site / "defs/mine.lock.toml").read_text()
    ctk("lock", "mine", "--check", **bare)
