"""The check of layers before a program: run by the shells that images have."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.runtime.layer_check import CHECK, CODE, FIX, STATUS, checked, not_mounted

ONE, TWO = "ctk-layer-" + "1" * 32, "ctk-layer-" + "2" * 32
SHELLS = (["dash"], ["bash"], ["bash", "--posix"], ["busybox", "sh"])
WORDS = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=6)


def run(shell: list[str], root: Path, command: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a checked command; `root` stands for the container's /.singularity.d."""
    program, option, text, *rest = command
    assert (program, option) == ("/bin/sh", "-c")
    argv = [*shell, "-c", text.replace("/.singularity.d", str(root)), *rest]
    environment = {"PATH": "/usr/bin:/bin", **variables}
    done = subprocess.run(argv, capture_output=True, check=False, env=environment)
    return subprocess.CompletedProcess(argv, done.returncode, done.stdout.decode(), done.stderr.decode())


def test_image_without_layers_is_not_looked_into() -> None:
    assert checked(("python", "train.py"), "x.sif", ()) == ["python", "train.py"]


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_missing_layer_ends_before_the_program_and_is_named(tmp_path: Path, shell: list[str]) -> None:
    (tmp_path / ONE).touch()
    command = checked(["touch", str(tmp_path / "ran")], r"my 100%s \n.sif", (ONE, TWO))
    done = run(shell, tmp_path, command)
    assert (done.returncode, done.stdout) == (STATUS, "") == (3, "")
    assert not (tmp_path / "ran").exists()
    assert done.stderr.startswith(rf"Error: {TWO} of my 100%s \n.sif is not mounted: ")
    assert done.stderr.endswith(f" [{CODE}]\n{FIX}\n")
    error = not_mounted(["noise", *done.stderr.splitlines()])
    assert error is not None
    assert (error.code, error.exit_status, error.fix) == (CODE, STATUS, FIX)
    assert f"Error: {error.message} [{CODE}]" == done.stderr.splitlines()[0]


def test_other_output_is_no_missing_layer() -> None:
    assert not_mounted(["Error: something else", f"[{CODE}]", ""]) is None


@given(WORDS, st.sampled_from(SHELLS))
def test_program_gets_its_words_and_variables_as_they_are(words: list[str], shell: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / ONE).touch()
        show = ["printf", "%s\\0", *words]
        printed = run(shell, root, checked(show, "x.sif", (ONE,))).stdout
    assert printed == "".join(f"{word}\0" for word in words or [""])


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_program_keeps_status_input_and_exported_variables(tmp_path: Path, shell: list[str]) -> None:
    (tmp_path / ONE).touch()
    for status in (0, 1, 3, 77, 126, 127, 255):
        assert run(shell, tmp_path, checked(["sh", "-c", f"exit {status}"], "x", (ONE,))).returncode == status
    assert run(shell, tmp_path, checked(["no-such-program"], "x", (ONE,))).returncode == 127
    (tmp_path / "plain").touch()
    assert run(shell, tmp_path, checked([str(tmp_path / "plain")], "x", (ONE,))).returncode == 126
    mine = {"image": "1", "layer": "2", "check": "3", "IFS": "x", "1": "odd"}
    done = run(shell, tmp_path, checked(["sh", "-c", 'echo "$image$layer$check"'], "x", (ONE,)), **mine)
    assert done.stdout == "123\n"


def test_text_fits_between_the_quotes_of_a_script() -> None:
    assert "'" not in CHECK
    assert CHECK.count("ctk: %s") == 1
