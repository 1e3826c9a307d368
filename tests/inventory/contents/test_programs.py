"""Whether an image holds the program of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill
from toolkit.inventory.contents.programs import missing_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def image(tmp_path: Path) -> Path:
    root = tmp_path / "sandbox"
    for place in ("usr/bin", "opt/tools", ".singularity.d/env", "etc"):
        (root / place).mkdir(parents=True)
    (root / "usr/bin/python3.11").touch()
    (root / "usr/bin/python3").symlink_to("python3.11")
    (root / "usr/bin/gone").symlink_to("nowhere")
    (root / "opt/tools/mine").touch()
    (root / ".singularity.d/env/10-docker.sh").write_text('export PATH="/opt/tools:/usr/bin"\n')
    return root


@pytest.mark.parametrize(
    "command",
    [
        ("python3", "train.py"),
        ("mine",),
        ("/usr/bin/python3",),
        ("./train.sh",),
        ("bin/run",),
        ("/project/ann/run.sh",),
        (),
    ],
)
def test_program_that_is_there_or_may_come_from_the_host_is_no_finding(image: Path, command: tuple[str, ...]) -> None:
    assert missing_program(image, command) is None


@pytest.mark.parametrize("command", [("python", "train.py"), ("/usr/bin/python",), ("gone",)])
def test_program_that_is_clearly_absent_is_an_error(image: Path, command: tuple[str, ...]) -> None:
    found = missing_program(image, command)
    assert found is not None
    assert found.code == "command-not-in-image"
    assert command[0] in found.message


def test_program_on_a_path_that_only_running_tells_is_no_finding(tmp_path: Path) -> None:
    script = {".singularity.d/env/90-environment.sh": ". /scratch/site/setup.sh\n"}
    root = fill(tmp_path / "root", {"usr/bin/env": "", **script})
    assert missing_program(root, ("solver",)) is None
    assert missing_program(root, ("/usr/bin/solver",)) is not None


@pytest.mark.parametrize("bind", ["/opt/tools", "/software:/opt/tools:ro", "/x:/opt/"])
def test_bind_over_the_path_may_bring_the_program(image: Path, bind: str) -> None:
    assert missing_program(image, ("python",), [bind]) is None
    assert missing_program(image, ("python",), ["/data:/mnt"]) is not None
