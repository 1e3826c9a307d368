"""`ctk cluster` as a user types it."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.scheduler.test_asking import program as fake
from tests.scheduler.test_detection import SCONTROL
from toolkit.scheduler.profile_file import load_profile

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk

pytestmark = pytest.mark.slow

SINFO = "n1|idle|4|16000|gpu:tesla:2|cpu*\nn1|idle|4|16000|gpu:tesla:2|debug\nn2|idle|4|16000|gpu:tesla:2|cpu*\n"


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """A PATH with programs that print what those of Slurm do."""
    directory = tmp_path / "programs/bin"
    directory.mkdir(parents=True)
    fake(directory, "sbatch", {})
    settings = "ClusterName = Alpha_1\nMaxArraySize = 1001\n"
    fake(directory, "scontrol", {"show partition --oneliner": SCONTROL, "show config": settings})
    fake(directory, "sinfo", {"--all --Node --noheader --format=%N|%t|%c|%m|%G|%P": SINFO})
    return {"PATH": str(directory)}


def test_list_shows_shipped_profiles_and_the_default(ctk: Ctk, tmp_path: Path) -> None:
    settings = tmp_path / "home/.config/ctk/settings.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('cluster = "lab"\n')
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in ctk("cluster", "list").stdout.splitlines()}
    assert rows["tsubame4"][:3] == ["shipped", "sge", "node_f, node_h, node_q, node_o, … (12)"]
    assert rows["lab"][3].endswith("(default)")
    found = json.loads(ctk("cluster", "list", "--json").stdout)
    assert (found["default"], len(found["clusters"])) == ("lab", len(rows) - 1)


def test_list_names_an_invalid_file_and_goes_on(ctk: Ctk) -> None:
    directory = ctk.directory / "sbatch/clusters"
    directory.mkdir(parents=True)
    (directory / "broken.toml").write_text("scheduler = 3\n")
    done = ctk("cluster", "list")
    assert "broken\there\t\t\tinvalid" in done.stdout
    assert "broken.toml:1: scheduler: should be text in quotes" in done.stderr
    found = json.loads(ctk("cluster", "list", "--json").stdout)
    assert [row["valid"] for row in found["clusters"] if row["name"] == "broken"] == [False]
    assert "[invalid-profile]" in done.stderr


def test_show_presents_partitions_gpus_and_sources(ctk: Ctk) -> None:
    shown = ctk("cluster", "show", "abci3").stdout
    for words in ("rt_HF\t7 days\t1-128\t192\t1920 GiB\t8 h200", "required\tpartition, account", "Source: https://"):
        assert words in shown
    assert "internet\tyes" in shown
    assert json.loads(ctk("cluster", "show", "abci3", "--json").stdout)["cluster"]["internet"] is True
    assert ctk("cluster", "show", "none", status=2).stderr.startswith("Error: there is no cluster profile")


def test_detected_profile_is_written_read_and_checked(ctk: Ctk, slurm: dict[str, str]) -> None:
    done = ctk("cluster", "detect", **slurm)
    path = ctk.directory / "sbatch/clusters/alpha_1.toml"
    assert done.stdout.startswith("sbatch/clusters/alpha_1.toml: slurm, partitions: cpu, debug")
    profile = load_profile(path)
    assert [partition.name for partition in profile.partitions] == ["cpu", "debug"]
    assert (profile.max_tasks, profile.gpu_types[0].type) == (1001, "tesla")
    assert "valid, compared with the scheduler" in ctk("cluster", "check", "alpha_1", **slurm).stdout
    found = json.loads(ctk("cluster", "check", "alpha_1", "--json", **slurm).stdout)
    assert (found["compared"], [finding["code"] for finding in found["findings"]]) == (True, ["cluster-facts-missing"])

    path.write_text(path.read_text().replace('max_time = "00:05:00"', 'max_time = "00:10:00"'))
    done = ctk("cluster", "check", "alpha_1", status=1, **slurm)
    assert "time limit is 10 minutes in the profile, and 5 minutes on this cluster [profile-differs]" in done.stdout


def test_detect_keeps_a_file_unless_forced(ctk: Ctk, slurm: dict[str, str]) -> None:
    path = ctk.directory / "sbatch/clusters/mine.toml"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n")
    assert "already exists" in ctk("cluster", "detect", "mine", status=2, **slurm).stderr
    assert path.read_text() == "# mine\n"
    printed = ctk("cluster", "detect", "mine", "--dry-run", **slurm).stdout
    assert path.read_text() == "# mine\n"
    ctk("cluster", "detect", "mine", "--force", **slurm)
    assert path.read_text() == printed
    path.unlink()
    path.symlink_to("elsewhere.toml")
    assert "symlink" in ctk("cluster", "detect", "mine", "--force", status=2, **slurm).stderr


def test_detect_to_a_file_and_as_json(ctk: Ctk, slurm: dict[str, str]) -> None:
    found = json.loads(ctk("cluster", "detect", "-o", "x.toml", "--json", **slurm).stdout)["cluster"]
    assert (found["name"], found["path"], found["scheduler"]) == ("x", "x.toml", "slurm")
    assert (ctk.directory / "x.toml").exists()
    for wrong in ("X.toml", "x.txt"):
        assert "--output should be a file" in ctk("cluster", "detect", "-o", wrong, status=2, **slurm).stderr
    assert "is not a valid name" in ctk("cluster", "detect", "My Cluster", status=2, **slurm).stderr


def test_detect_and_check_without_a_scheduler(ctk: Ctk, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    bare = {"PATH": str(tmp_path / "empty")}
    assert "this host has no scheduler" in ctk("cluster", "detect", status=3, **bare).stderr
    done = ctk("cluster", "check", "tsubame4", **bare)
    assert "not compared with a scheduler: the profile is for sge, and this host has no scheduler" in done.stdout


def test_names_of_clusters_are_completed(program: Ctk) -> None:
    for line in ("ctk cluster show tsu", "ctk sbatch --cluster tsu", "ctk audit --cluster tsu"):
        words = {"COMP_WORDS": line, "COMP_CWORD": "3"}
        assert program(_CTK_COMPLETE="complete_bash", **words).stdout.split() == ["tsubame4"]


@pytest.mark.parametrize("printed", ["", "\0" * 1000, "no partition here\n"])
def test_detect_writes_nothing_if_the_scheduler_says_nothing(ctk: Ctk, tmp_path: Path, printed: str) -> None:
    directory = tmp_path / "silent"
    directory.mkdir()
    (directory / "printed").write_text(printed)
    for name in ("sbatch", "scontrol", "sinfo"):
        (directory / name).write_text(f'#!/bin/sh\nwhile read -r line; do echo "$line"; done < {directory}/printed\n')
        (directory / name).chmod(0o755)
    done = ctk("cluster", "detect", "mine", status=4, PATH=str(directory))
    assert "printed no partitions" in done.stderr
    assert not (ctk.directory / "sbatch").exists()


def test_detect_writes_what_it_can_read(ctk: Ctk, slurm: dict[str, str]) -> None:
    directory = Path(slurm["PATH"])
    twice = SCONTROL + SCONTROL.replace("PartitionName=", "MinNodes=9 PartitionName=", 1)
    fake(directory, "scontrol", {"show partition --oneliner": twice, "show config": "MaxArraySize = 4294967295\n"})
    user = getpass.getuser()
    words = "--noheader --parsable2 show"
    listed, default = f"{words} associations user={user} format=account", f"{words} user {user} format=defaultaccount"
    fake(directory, "sacctmgr", {listed: "\x1b[31mred\n\u202eodd\n", default: ""})
    ctk("cluster", "detect", "mine", **slurm)
    path = ctk.directory / "sbatch/clusters/mine.toml"
    assert "\x1b" not in path.read_text()
    assert [partition.name for partition in load_profile(path).partitions] == ["cpu", "debug"]


def test_check_of_a_scheduler_that_does_not_answer(ctk: Ctk, slurm: dict[str, str]) -> None:
    ctk("cluster", "detect", "mine", **slurm)
    fake(Path(slurm["PATH"]), "scontrol", {})
    done = ctk("cluster", "check", "mine", **slurm)
    assert "mine.toml: valid\n" in done.stdout
    assert "not compared with a scheduler" in done.stdout


def test_the_scheduler_to_ask_can_be_named(ctk: Ctk, slurm: dict[str, str]) -> None:
    assert "qconf" in ctk("cluster", "detect", "mine", "--scheduler", "sge", status=3, **slurm).stderr
    ctk("cluster", "detect", "mine", **slurm)
    done = ctk("cluster", "check", "mine", "--scheduler", "pbs", **slurm)
    assert "the profile is for slurm, and this host has pbs" in done.stdout
