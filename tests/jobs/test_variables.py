"""The variables of a job: which may stand in a script, which must not, and that the others arrive all the same."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.jobs.defaults import JobRequest, complete
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.variables import parse_environment
from toolkit.support.errors import WrongInput
from toolkit.support.secret_words import holds_secret

if TYPE_CHECKING:
    from toolkit.jobs.model import Job

SECRET = "s3cr3t"  # noqa: S105
NASTY = "$(touch pwned) `id` \"x\" 'y' \\ $HOME é"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("WANDB_API_KEY", SECRET, True),
        ("HF_TOKEN", SECRET, True),
        ("MY_SECRETS", SECRET, True),
        ("DB_PASSWORD", "1234", True),
        ("db_pass", SECRET, True),
        ("AWS_SECRET_ACCESS_KEY", "/+ab", True),
        ("DATABASE", "postgres://me:secret@db/x", True),
        ("SLACK_WEBHOOK", "https://x/y", True),
        ("WANDB_API_KEY", NASTY, True),
        ("WANDB_API_KEY", "$WANDB_API_KEY", True),
        ("WANDB_API_KEY", "", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("MAX_TOKENS", "512", False),
        ("KERAS_BACKEND", "jax", False),
        ("SSL_KEY_FILE", "/etc/key.pem", False),
        ("URL", "https://example.org/?a=1", False),
    ],
)
def test_a_secret_is_known_by_its_name_or_its_address(name: str, value: str, secret: bool) -> None:
    assert holds_secret(name, value) is secret


def job(directory: Path, *environment: str, **more: object) -> Job:
    request = JobRequest(command=("program",), environment=environment, **more)  # type: ignore[arg-type]
    return complete(request, name="x", image=Path("x.sif"), recipe=None, directory=directory)


@pytest.mark.parametrize(
    "request_",
    [
        JobRequest(command=("program",), environment=(f"WANDB_API_KEY={SECRET}",)),
        JobRequest(command=("env", "A=1", f"HF_TOKEN={SECRET}", "program")),
        JobRequest(command=("program",), directives=(f"--export=ALL,HF_TOKEN={SECRET}",)),
        JobRequest(command=("program", "--api-key", SECRET)),
        JobRequest(command=("program", f"--hf-token={SECRET}")),
        JobRequest(command=("curl", "-H", f"Authorization: Bearer {SECRET}12345678")),
        JobRequest(command=("curl", f"https://ann:{SECRET}@example.org/x")),
        JobRequest(command=("bash", "-c", f"export WANDB_API_KEY={SECRET}; python train.py")),
        JobRequest(command=("python", "train.py", f"trainer.logger.api_key={SECRET}")),
        JobRequest(command=("program",), directives=(f"--comment=token={SECRET}",)),
        JobRequest(command=("program",), environment=(f"GITHUB_PAT={SECRET}",)),
        JobRequest(command=("sh", "-c", f"curl https://hooks.slack.com/services/{SECRET}")),
    ],
)
def test_a_secret_does_not_get_into_a_script(tmp_path: Path, request_: JobRequest) -> None:
    with pytest.raises(WrongInput) as refusal:
        complete(request_, name="x", image=Path("x.sif"), recipe=None, directory=tmp_path)
    assert refusal.value.code == "secret-in-script"
    assert SECRET not in refusal.value.message + (refusal.value.fix or "")
    assert "--env-file FILE" in (refusal.value.fix or "")


@pytest.mark.parametrize("value", ["$HF_TOKEN", "${HF_TOKEN}"])
def test_a_variable_in_a_value_is_refused_with_the_right_option(value: str) -> None:
    with pytest.raises(WrongInput, match=re.escape(f"HF_TOKEN={value}: nothing replaces {value}")) as refusal:
        parse_environment(f"HF_TOKEN={value}")
    assert "then --env HF_TOKEN\n" in (refusal.value.fix or "")


@pytest.mark.parametrize(
    "words",
    [
        *(["--pad-token", "</s>"], ["--sort-key", "loss"], ["--api-key"], ["--password", "none"]),
        *(["--max-tokens=512"], ["https://example.org/?a=1"], ["https://example.org/services/data"]),
    ],
)
def test_usual_words_of_a_command_are_no_secrets(tmp_path: Path, words: list[str]) -> None:
    request = JobRequest(command=("program", *words))
    assert complete(request, name="x", image=Path("x.sif"), recipe=None, directory=tmp_path).command[1:] == tuple(words)


def test_what_is_named_as_no_secret_is_accepted(tmp_path: Path) -> None:
    words = ("program", "--api-key", SECRET)
    options: dict[str, Any] = {"name": "x", "image": Path("x.sif"), "recipe": None, "directory": tmp_path}
    with pytest.raises(WrongInput, match="--api-key") as refusal:
        complete(JobRequest(command=words), **options)
    assert "--not-secret --api-key" in (refusal.value.fix or "")
    request = JobRequest(command=words, environment=(f"A_TOKEN={SECRET}",), not_secret=("--api-key", "A_TOKEN"))
    assert complete(request, **options).command == words


@pytest.mark.parametrize("export", ["NONE", "NIL", "A,B", ""])
def test_an_export_that_leaves_the_variable_out_is_refused(tmp_path: Path, export: str) -> None:
    directive = f"--export={export}" if export else "--export"
    with pytest.raises(WrongInput, match="omits it"):
        job(tmp_path, "HF_TOKEN", directives=(directive,))
    assert job(tmp_path, "HF_TOKEN", directives=("--export=ALL",)).inherited == ("HF_TOKEN",)


def secrets_in(directory: Path, text: str, mode: int = 0o600) -> Path:
    path = directory / "my secrets"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(WrongInput) as refusal:
        job(tmp_path, env_file=secrets_in(tmp_path, "A=b\n", mode))
    assert (refusal.value.fix or "").startswith("chmod 600 '")


@pytest.mark.parametrize("text", [f"export A={SECRET}\n", f"A=b\n{SECRET}\n", f"A B={SECRET}"])
def test_a_line_of_another_form_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(WrongInput) as refusal:
        job(tmp_path, env_file=secrets_in(tmp_path, text))
    assert "NAME=VALUE" in refusal.value.message
    assert SECRET not in refusal.value.message


def test_a_file_that_is_not_there_or_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(WrongInput, match="--env-file"):
            job(tmp_path, env_file=path)


class Node:
    """Runs a script as Slurm would, with a runtime that prints its arguments and one variable."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "x.sif").touch()
        program = directory / "bin" / "apptainer"
        program.parent.mkdir(exist_ok=True)
        program.write_text('#!/bin/sh\necho "arguments: $*"\nprintf "<%s>" "$HF_TOKEN" > value\n')
        program.chmod(0o755)

    def run(self, job: Job, **more: str) -> subprocess.CompletedProcess[str]:
        (self.directory / "value").unlink(missing_ok=True)
        path = self.directory / "x.sbatch"
        path.write_text(script_text(job, SLURM, ""))
        assert SECRET not in path.read_text()
        environment = {
            "PATH": f"{self.directory / 'bin'}:/usr/bin:/bin",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NAME": "x",
            "SLURM_SUBMIT_DIR": str(self.directory),
            **more,
        }
        command = ["bash", path]
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, check=False)

    @property
    def value(self) -> str | None:
        path = self.directory / "value"
        return path.read_text() if path.exists() else None


def test_an_inherited_variable_arrives_and_stands_on_no_command_line(tmp_path: Path) -> None:
    node, asked = Node(tmp_path), job(tmp_path, "HF_TOKEN")
    for value in (SECRET, NASTY, ""):
        done = node.run(asked, HF_TOKEN=value)
        assert (done.returncode, node.value) == (0, f"<{value}>"), done.stderr
        assert not value or value not in done.stdout
    assert not (tmp_path / "pwned").exists()
    done = node.run(asked)
    assert (done.returncode, node.value) == (2, None)
    assert "HF_TOKEN is not set in this job: export it before sbatch" in done.stderr


def test_env_file_read_on_node(tmp_path: Path) -> None:
    path = secrets_in(tmp_path, f"# of the lab\n\nA=1\r\nHF_TOKEN={SECRET}=\n")
    node, asked = Node(tmp_path), job(tmp_path, env_file=path)
    assert asked.env_file == "./my secrets"
    assert "# Secrets: keep this file readable by its owner only" in script_text(asked, SLURM, "")
    done = node.run(asked)
    assert (done.returncode, node.value) == (0, f"<{SECRET}=>"), done.stderr
    assert SECRET not in done.stdout + done.stderr
    path.chmod(0o640)
    assert "chmod 600" in node.run(asked).stderr
    path.chmod(0o600)
    path.write_text(f"HF TOKEN={SECRET}")
    done = node.run(asked)
    assert (done.returncode, node.value) == (2, None)
    assert "line 1 of ./my secrets is not NAME=VALUE" in done.stderr
    assert SECRET not in done.stderr
    path.unlink()
    assert node.run(asked).returncode == 2


@examples(25)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_any_value_of_a_file_arrives_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    directory = tmp_path_factory.mktemp("node")
    node = Node(directory)
    done = node.run(job(directory, env_file=secrets_in(directory, f"HF_TOKEN={value}\n")), LC_ALL="C.UTF-8")
    assert (done.returncode, node.value) == (0, f"<{value}>"), done.stderr
