"""`ctk sbatch` and the audit of the job's image: what is refused, what is warned of, and what is left alone."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from tests.gpu.small_images import SITE, Files, torch
from tests.inventory.making import distribution, fill, python_files
from toolkit.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

CPU_TORCH = distribution(
    "torch",
    "2.5.1+cpu",
    SITE,
    {"torch/__init__.py": "", "torch/version.py": "__version__ = '2.5.1+cpu'\ncuda = None\n"},
)
READY, BROKEN, PLAIN = torch(), torch(without="libcusparse.so.12"), dict[str, str | bytes]()
COMMAND = ("-J", "x", "--image", "trial.sif")
PROGRAM = ("--", "python3", "-c", "a b")


class Ground:
    """A directory with an image, which is where ctk runs."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory, self.monkeypatch, self.capsys = directory, monkeypatch, capsys
        monkeypatch.chdir(directory)
        monkeypatch.setenv("CTK_HOME", str(directory / "ctk"))

    def image(self, files: Files) -> None:
        shutil.rmtree(self.directory / "trial.sif", ignore_errors=True)
        for part in (python_files(), files, {".singularity.d/": ""}):
            fill(self.directory / "trial.sif", part)

    def sbatch(self, *options: str, program: tuple[str, ...] = ()) -> tuple[int, str]:
        """The exit status, and what is said on both streams."""
        words = ["--", *program] if program else PROGRAM
        self.monkeypatch.setattr(sys, "argv", ["ctk", "sbatch", *COMMAND, *options, *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        said = self.capsys.readouterr()
        return end.value.code, said.out + said.err

    @property
    def written(self) -> bool:
        return (self.directory / "x.sbatch").exists()


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ground:
    return Ground(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("files", "verdict", "code"),
    [(CPU_TORCH, "cpu-only", "cpu-only-build"), (BROKEN, "gpu-broken", "missing-cuda-library")],
    ids=["cpu-only", "gpu-broken"],
)
@pytest.mark.parametrize("asking", [("--gpus", "1"), ("--directive=--gres=gpu:1",)], ids=["gpus", "gres"])
def test_image_that_cannot_use_the_gpu_is_refused_without_force(
    ground: Ground, files: Files, verdict: str, code: str, asking: tuple[str, ...]
) -> None:
    ground.image(files)
    status, said = ground.sbatch(*asking)
    assert (status, ground.written) == (1, False)
    for words in (f"trial.sif is {verdict}: ", f"[{code}]", "[image-cannot-use-gpu]", "--gpus 0", "--force"):
        assert words in said
    assert ground.sbatch(*asking, "--dry-run")[0] == 1
    status, said = ground.sbatch(*asking, "--force")
    assert (status, ground.written) == (0, True)
    assert f"trial.sif is {verdict}: " in said


def test_image_that_can_use_the_gpu_is_accepted(ground: Ground) -> None:
    ground.image(READY)
    status, said = ground.sbatch("--gpus", "1")
    assert (status, ground.written) == (0, True)
    assert "image-cannot-use-gpu" not in said
    assert "no-gpu-asked-for" not in said


VENV = {path.replace(SITE, "opt/venv/lib/python3.11/site-packages"): content for path, content in READY.items()}
PYTHON = "/opt/venv/bin/python"


@pytest.mark.parametrize(
    ("program", "refused"),
    [(("python3", "train.py"), True), ((PYTHON, "train.py"), False), (("bash", "run.sh"), False)],
)
def test_python_that_the_command_names_is_judged(ground: Ground, program: tuple[str, ...], refused: bool) -> None:
    """The default Python has a CPU build, and an environment off PATH one for GPUs."""
    venv = {"opt/venv/pyvenv.cfg": "home = /usr/local/bin\n", PYTHON[1:]: "-> /usr/local/bin/python3.11"}
    ground.image({**CPU_TORCH, **venv, **VENV})
    status, said = ground.sbatch("--gpus", "1", program=program)
    assert (status, "is cpu-only" in said) == (int(refused), refused), said
    assert ground.written is not refused


def test_image_without_a_framework_is_accepted(ground: Ground) -> None:
    ground.image(PLAIN)
    assert ground.sbatch("--gpus", "1")[0] == 0


@pytest.mark.parametrize("files", [READY, BROKEN], ids=["gpu-ready", "gpu-broken"])
def test_gpu_framework_without_a_gpu_is_warned_of_with_the_line_to_type(ground: Ground, files: Files) -> None:
    ground.image(files)
    status, said = ground.sbatch()
    assert (status, ground.written) == (0, True)
    assert (
        "./trial.sif has PyTorch 2.5.1+cu124, built for GPUs, but the job requests no GPU and will run on the CPU"
        in said
    )
    assert "ctk sbatch --gpus 1 -J x --image trial.sif -- python3 -c 'a b'" in said
    assert "add --gpus 0 instead" in said


@pytest.mark.parametrize("files", [READY, BROKEN, CPU_TORCH], ids=["gpu-ready", "gpu-broken", "cpu-only"])
def test_gpus_0_says_that_it_is_meant(ground: Ground, files: Files) -> None:
    ground.image(files)
    status, said = ground.sbatch("--gpus", "0")
    assert status == 0
    assert "no-gpu-asked-for" not in said


def test_cpu_image_without_a_gpu_is_not_warned_of_and_a_plain_one_is_as_ever(ground: Ground) -> None:
    ground.image(PLAIN)
    assert "Add --gpus 1, or --gpus 0 to confirm a CPU job." in ground.sbatch()[1]
    ground.image(CPU_TORCH)
    assert "no-gpu-asked-for" not in ground.sbatch()[1]


def test_script_that_the_user_changed_is_named_before_the_image(ground: Ground) -> None:
    """Who then gives --force knows that it replaces the script, too."""
    ground.image(CPU_TORCH)
    (ground.directory / "x.sbatch").write_text("mine\n")
    status, said = ground.sbatch("--gpus", "1")
    assert status == 2
    assert "was not replaced" in said
    assert (ground.directory / "x.sbatch").read_text() == "mine\n"


def test_gate_with_the_framework_has_its_check_and_needs_one(ground: Ground) -> None:
    ground.image(READY)
    assert ground.sbatch("--gpus", "1", "--gate", "framework")[0] == 0
    text = (ground.directory / "x.sbatch").read_text()
    assert "run_gate(main, MARK, Check(), 'PyTorch')" in text
    assert ' --framework "$gpu_gate_framework" /usr/local/bin/python3' in text
    ground.image(PLAIN)
    status, said = ground.sbatch("--gpus", "1", "--gate", "framework")
    assert status == 2
    assert "has no framework for GPUs that ctk can check" in said


def test_fix_of_two_lines_is_printed_as_two_lines(ground: Ground) -> None:
    """The line to type can be copied."""
    ground.image(READY)
    lines = ground.sbatch()[1].splitlines()
    typed = lines.index("    ctk sbatch --gpus 1 -J x --image trial.sif -- python3 -c 'a b'")
    assert lines[typed + 1] == "    If a CPU job is meant, add --gpus 0 instead."


def test_image_without_a_framework_and_without_a_gpu_is_no_warning(ground: Ground) -> None:
    ground.image(PLAIN)
    status, said = ground.sbatch("--gate", "driver")
    assert status == 0
    assert "· The job requests no GPU and will run on the CPU\n" in said
    assert "no-gpu-asked-for" not in said


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--gpus", "0", "--gpu-monitor"), "--gpu-monitor has no effect in a job without GPUs"),
        (("--gpus", "0", "--gate", "framework"), "--gate framework has no effect in a job without GPUs"),
        (("--gpus", "1", "--no-gpu-gate", "--gate", "framework"), "--gate framework has no effect with --no-gpu-gate"),
        (("--gpus", "tesla:1", "--nodes", "2"), "--gpus tesla:1 is fewer than --nodes 2"),
    ],
)
def test_gpu_options_without_effect_are_refused(ground: Ground, options: tuple[str, ...], reason: str) -> None:
    ground.image(READY)
    status, said = ground.sbatch(*options)
    assert (status, ground.written) == (2, False)
    assert reason in said


def test_missing_program_is_a_warning_and_the_script_is_written(ground: Ground) -> None:
    ground.image(READY)
    status, said = ground.sbatch("--gpus", "1", "--", "no-such-program")
    assert (status, ground.written) == (0, True)
    assert "! the image has no program no-such-program" in said
    assert "; the script was written [command-not-in-image]" in said
    assert "; the script was written" not in ground.sbatch("--gpus", "1", "--dry-run", "--", "no-such-program")[1]


def test_recipe_in_place_of_the_command_is_told(ground: Ground) -> None:
    ground.image(READY)
    status, said = ground.sbatch("--gpus", "1", program=("pytorch",))
    assert "pytorch is a recipe. For its job: --job-name pytorch, and no command." in said
    assert (status, ground.written) == (2, False), "a script for it would replace a good one of the same name"


def test_image_in_place_of_the_command_is_told(ground: Ground) -> None:
    ground.image(READY)
    ground.directory.joinpath("other.sif").touch()
    status, said = ground.sbatch("--gpus", "1", program=("other.sif", "python", "train.py"))
    assert "other.sif is an image. For a job in it: --image other.sif python train.py" in said
    assert (status, ground.written) == (2, False)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("main.py", "main.py is a file here. To run it: python main.py --epochs 3"),
        ("a b.sh", "'a b.sh' is a file here. To run it: bash 'a b.sh' --epochs 3"),
        ("old.sbatch", "old.sbatch is a job script. Submit it: sbatch old.sbatch"),
    ],
)
def test_file_in_place_of_the_program_is_told(ground: Ground, name: str, instead: str) -> None:
    ground.image(READY)
    ground.directory.joinpath(name).touch()
    status, said = ground.sbatch("--gpus", "1", program=(name, "--epochs", "3"))
    assert instead in said
    assert (status, ground.written) == (2, False)


def test_gpu_for_an_image_without_a_framework_is_noted(ground: Ground) -> None:
    ground.image({})
    status, said = ground.sbatch("--gpus", "1")
    assert (status, ground.written) == (0, True)
    assert "has no GPU framework that ctk knows, and the job requests a GPU" in said
    assert "no GPU framework" not in ground.sbatch("--gpus", "0")[1]
