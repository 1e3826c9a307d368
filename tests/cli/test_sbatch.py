"""`ctk sbatch` from its words to its file: what is written, what is said, and that bad input writes nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.schemas import check_document, documents_in
from toolkit.builds.outdated import made_from
from toolkit.builds.record import Record, RecordedBase, write_beside
from toolkit.cli.main import main
from toolkit.recipes.catalogue import Catalogue

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a training script and a sandbox-like image, which is where ctk runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTK_HOME", str(tmp_path / "ctk"))
    (tmp_path / "train.py").touch()
    (tmp_path / "trial.sif" / ".singularity.d").mkdir(parents=True)
    (tmp_path / "trial.sif/usr/bin").mkdir(parents=True)
    (tmp_path / "trial.sif/usr/bin/python").touch()
    return tmp_path


def ctk(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["ctk", *words])
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code


def test_a_job_name_is_enough(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ctk("sbatch", "--job-name", "x", monkeypatch=monkeypatch) == 0
    text = (directory / "x.sbatch").read_text()
    assert '"$runtime" --quiet exec' in text
    assert '"$image" "${check[@]}" python train.py\n' in text
    assert "image=./trial.sif" in text


def test_short_options_of_sbatch_come_before_the_command_and_are_its_own_after_it(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = ["-p", "gpu", "-A", "lab", "-q", "high", "-t", "30", "-a", "0-3", "-C", "a100&ib", "-N", "2", "-n", "8"]
    command = ["python", "-c", "print(1)", "-t", "5", "-n", "9"]
    words = ["sbatch", "-J", "x", *short, "-c4", "-G", "2", "--force", "--module", "cuda/12.4", *command]
    assert ctk(*words, monkeypatch=monkeypatch) == 0
    lines = (directory / "x.sbatch").read_text().splitlines()
    for option in (
        *("partition=gpu", "account=lab", "qos=high", "time=00:30:00", "array=0-3", "constraint=a100&ib", "nodes=2"),
        *("ntasks-per-node=4", "cpus-per-task=4", "gpus=2"),
    ):
        assert f"#SBATCH --{option}" in lines
    assert 'module load cuda/12.4 || fail 127 "node $HOSTNAME cannot load the module cuda/12.4"' in lines
    assert any(line.endswith("python -c 'print(1)' -t 5 -n 9") for line in lines)


@pytest.mark.parametrize("name", ["x-%j.sbatch", "logs/x.out", "x.log", "x.err"])
def test_path_of_the_script_that_looks_like_a_log_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert ctk("sbatch", "-J", "x", "-o", name, monkeypatch=monkeypatch) == 2
    assert "Omit it: the log is always logs/NAME-ID.log." in capsys.readouterr().err
    assert not (directory / name).exists()


def test_a_recipe_of_that_name_gives_gpus_time_and_command(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("sbatch", "-J", "keras-bert", "--image", "trial.sif", "--json")
    assert ctk(*command, monkeypatch=monkeypatch) == 0
    (document,) = documents_in(capsys.readouterr().out)
    check_document(document)
    assert (document["schema"], document["gpus"], document["job_id"]) == ("ctk.script/1", "1", None)
    assert document["command"] == ["python3", "/opt/keras-bert/train.py"]
    assert (directory / document["script"]).read_text() == document["text"]
    assert "#SBATCH --time=00:30:00" in document["text"]


def test_dry_run_prints_the_script_alone(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ctk("sbatch", "-J", "x", "--dry-run", monkeypatch=monkeypatch) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("#!/bin/bash\n# Job x for Slurm")
    assert shown.out.endswith('exit "$status"\n')
    assert "no GPU" in shown.err
    assert not (directory / "x.sbatch").exists()


def test_options_after_the_dashes_are_the_command_s(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("sbatch", "-J", "x", "--gpus", "0", "--", "python", "train.py", "--gpus", "7", "--json")
    assert ctk(*words, monkeypatch=monkeypatch) == 0
    assert "python train.py --gpus 7 --json\n" in (directory / "x.sbatch").read_text()


def test_submit_without_a_scheduler_names_the_practice_cluster(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(directory))
    assert ctk("sbatch", "-J", "x", "--submit", monkeypatch=monkeypatch) == 3
    assert "ctk lab up" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ("--time", "banana"),
        ("--gpus", "-1"),
        ("--gpus", "tesla"),
        ("--nodes", "0"),
        ("--nodes", "-2"),
        ("--nodes", "two"),
        ("--mem", "lots"),
        ("--cpus-per-task", "0"),
        ("--partition", "a b"),
        ("--account", "a;b"),
        ("--array", "9-0"),
        ("--image", "missing.sif"),
        ("--image", "train.py"),
        ("--recipe", "keras-brt"),
        ("--bind", "/a,/b"),
        ("--env", "1X=2"),
        ("--directive", "--output=x"),
        ("--directive", "-p gpu"),
        ("--output", "missing/x.sbatch"),
        ("--job-name", "a\nb"),
        ("--job-name", "a/b"),
        ("--", ""),
    ],
)
def test_bad_input_is_one_message_and_nothing_written(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    before = sorted(path.name for path in directory.iterdir())
    name = () if "--job-name" in words else ("--job-name", "x")
    assert ctk("sbatch", *name, *words, monkeypatch=monkeypatch) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("Error") == 1
    assert "Traceback" not in shown.err
    assert sorted(path.name for path in directory.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--", "pyton", "train.py"), "the image has no program pyton"),
        (("--env", "API_TOKEN", "--shell", "true"), "API_TOKEN is not set here"),
    ],
)
def test_job_that_would_stop_at_once_is_not_submitted(
    directory: Path,
    words: tuple[str, ...],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("API_TOKEN", raising=False)
    (directory / "trial.sif" / "bin").mkdir()
    (directory / "trial.sif" / "bin" / "sh").touch()
    assert ctk("sbatch", "-J", "x", "--gpus", "0", "--submit", *words, monkeypatch=monkeypatch) == 2
    assert f"it would fail at once: {reason}" in capsys.readouterr().err
    assert ctk("sbatch", "-J", "x", "--gpus", "0", *words, monkeypatch=monkeypatch) == 0
    assert reason in capsys.readouterr().err


def test_an_image_that_is_older_than_its_recipe_is_named(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "defs").mkdir()
    path = directory / "defs/mine.toml"
    path.write_text('base = "debian-12"\n')
    catalogue = Catalogue.here()
    made = made_from(catalogue.recipe("mine"), None, other_base=False)
    write_beside(directory / "trial.sif", Record("recipe:mine", RecordedBase("debian-12"), made_from=made))
    command = ("sbatch", "-J", "x", "--image", "trial.sif", "--json", "--force", "python", "train.py")

    def codes() -> list[str]:
        assert ctk(*command, monkeypatch=monkeypatch) == 0
        (document,) = documents_in(capsys.readouterr().out)
        check_document(document)
        return [found["code"] for found in document["findings"]]

    assert "image-outdated" not in codes()
    path.write_text('base = "debian-12"\napt = ["gcc"]\n')
    assert "image-outdated" in codes()
