"""Where ctk's own words end and another program's command line begins, and what a command line may look like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.cli.main import COMMANDS, _global_trace_first, load
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cli.conftest import Ctk

TRAIN = ["python", "train.py", "--epochs", "1"]


def parsed(name: str, words: Sequence[str]) -> dict[str, Any]:
    command = load({entry.name: entry for entry in COMMANDS}[name])
    found: dict[str, Any] = command.make_context(name, list(words)).params
    return found


@pytest.mark.parametrize(
    "words",
    [
        ["x.sif", *TRAIN],
        ["x.sif", "--", *TRAIN],
        ["--", "x.sif", *TRAIN],
        ["--bind", "/a", "x.sif", *TRAIN],
        ["x.sif", "--bind", "/a", "--", *TRAIN],
        ["x.sif", "--bind=/a", *TRAIN],
    ],
)
def test_run_takes_all_that_follows_the_image_for_the_command(words: list[str]) -> None:
    found = parsed("run", words)
    assert (str(found["image"]), list(found["command"])) == ("x.sif", TRAIN)
    assert list(found["bind"] or ()) == (["/a"] if "/a" in " ".join(words) else [])


def test_run_leaves_its_own_options_to_the_program_after_the_command_began() -> None:
    found = parsed("run", ["x.sif", "mpirun", "--bind", "core", "--dry-run", "--help", "--", "x"])
    assert list(found["command"]) == ["mpirun", "--bind", "core", "--dry-run", "--help", "--", "x"]
    assert not found["dry_run"]
    assert not found["bind"]


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1), max_size=4))
def test_run_hands_over_any_words_of_a_command_unchanged(rest: list[str]) -> None:
    assert list(parsed("run", ["x.sif", "program", *rest])["command"]) == ["program", *rest]


def test_shell_and_sbatch_take_a_command_without_dashes_too() -> None:
    assert list(parsed("shell", ["sb/", "pip", "install", "-r", "r.txt"])["command"]) == [
        "pip",
        "install",
        "-r",
        "r.txt",
    ]
    found = parsed("sbatch", ["-J", "x", "-oy.sbatch", "--gpus=1", *TRAIN])
    assert (found["job_name"], str(found["output"]), found["gpus"]) == ("x", "y.sbatch", "1")
    assert list(found["command"]) == TRAIN


@pytest.mark.parametrize("option", ["--gpus", "--gpus=2", "-o", "--submit", "--trace", "--help"])
def test_sbatch_refuses_its_own_option_after_the_command(option: str) -> None:
    with pytest.raises(WrongInput) as refusal:
        parsed("sbatch", ["-J", "x", "python", "train.py", option])
    assert f"-- python train.py {option}" in (refusal.value.fix or "")
    assert list(parsed("sbatch", ["-J", "x", "--", "python", "train.py", option])["command"])[-1] == option


def test_unknown_option_is_named_before_an_option_after_its_value(ctk: Ctk) -> None:
    refused = ctk("script", "-N", "try", "--image", "x.sif", status=2)
    assert "No such option: -N" in refused.stderr


@pytest.mark.parametrize(
    ("words", "traced"),
    [
        (["doctor", "--trace"], True),
        (["run", "x.sif", "--trace", "python"], True),
        (["run", "x.sif", "python", "--trace"], False),
        (["run", "--bind", "x", "x.sif", "python", "--trace"], False),
        (["sbatch", "-J", "x", "--trace", "--", "python"], True),
        (["sbatch", "-J", "x", "--", "python", "--trace"], False),
    ],
)
def test_trace_is_looked_for_among_the_own_options_only(words: list[str], traced: bool) -> None:
    assert (_global_trace_first(words)[0] == "--trace") is traced
    assert sorted(_global_trace_first(words)) == sorted(words)


def image_in(ctk: Ctk) -> None:
    (ctk.directory / "trial.sif/.singularity.d").mkdir(parents=True)


def test_json_of_the_program_is_not_ctk_s(ctk: Ctk) -> None:
    image_in(ctk)
    assert ctk("sbatch", "--image", "none.sif", "--", "python", "--json", status=2).stdout == ""
    assert json.loads(ctk("sbatch", "--image", "none.sif", "--json", "python", status=2).stdout)["exit_status"] == 2


@pytest.mark.parametrize("command", [("run", "trial.sif"), ("sbatch", "--image", "trial.sif", "--gpus", "0")])
def test_a_single_word_with_blanks_is_named_with_the_fix(ctk: Ctk, command: tuple[str, ...]) -> None:
    image_in(ctk)
    said = ctk(*command, "python train.py", status=2).stderr
    assert "Give its words separately: python train.py\n" in said
    assert "--shell 'python train.py'" in said
    both = ctk(*command, "--shell", "ls | sort", "ls", status=2).stderr
    assert "--shell and a command" in both
    assert "--shell has no command line" in ctk(*command, "--shell", " ", status=2).stderr


def test_a_variable_of_the_job_is_told_and_shell_passes_the_line_on(ctk: Ctk) -> None:
    image_in(ctk)
    job = ("sbatch", "-J", "x", "--image", "trial.sif", "--gpus", "0")
    said = ctk(*job, "python", "-m", "a", "--rank=$SLURM_PROCID", "--host", "${MASTER_ADDR}:1").stderr
    assert "gets the literal text $SLURM_PROCID" in said
    assert """--shell 'python -m a "--rank=$SLURM_PROCID" --host "${MASTER_ADDR}:1"'""" in said
    assert "literal text" not in ctk(*job, "--", "bash", "-c", "echo $SLURM_PROCID").stderr
    done = ctk(*job, "--shell", "cd src && python t.py --rank=$SLURM_PROCID", "--json")
    document = json.loads(done.stdout)
    assert document["command"] == ["sh", "-c", "cd src && python t.py --rank=$SLURM_PROCID"]
    assert "variable-not-expanded" not in {finding["code"] for finding in document["findings"]}
