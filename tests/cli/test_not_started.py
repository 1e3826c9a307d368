"""A command that a container could not start has a shell's exit status and a message."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill
from toolkit.cli.not_started import status_of
from toolkit.runtime.engine import Runtime

if TYPE_CHECKING:
    from pathlib import Path

# Runs the command behind the image in this file system.
RUNTIME = '#!/bin/sh\nwhile [ "$1" != ./x ] && [ "${1%/image}" = "$1" ]; do shift; done; shift; exec "$@"\n'


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    program = tmp_path / "apptainer"
    program.write_text(RUNTIME)
    program.chmod(0o755)
    return Runtime(program, "apptainer", (1, 4, 5))


def asked(runtime: Runtime, image: Path, status: int, *words: str, by_shell: bool = False) -> int:
    environment: dict[str, str | None] = {"PATH": os.environ["PATH"]}
    return status_of(status, runtime, image, words, binds=(), environment=environment, by_shell=by_shell)


def test_a_program_s_own_status_is_kept_and_nothing_is_asked(runtime: Runtime, tmp_path: Path) -> None:
    runtime.program.write_text("#!/bin/sh\necho asked > asked\n")
    for status in (0, 1, 126, 127, 254):
        assert asked(runtime, tmp_path / "none.sif", status, "/nothing") == status
    assert not (tmp_path / "asked").exists()


def test_a_program_that_the_image_lacks_is_named(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = fill(tmp_path / "image", {".singularity.d/": "", "usr/bin/sh": ""})
    assert asked(runtime, image, 255, "/usr/bin/pyhton") == 127
    assert "/usr/bin/pyhton" in capsys.readouterr().err


def test_a_program_of_the_host_is_looked_for_in_the_container(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "image"  # which ctk cannot read
    image.write_text("odd")
    (tmp_path / "plain").touch()
    (tmp_path / "train").write_text("#!/bin/sh\n")
    (tmp_path / "train").chmod(0o755)
    assert asked(runtime, image, 255, str(tmp_path / "gone")) == 127
    assert "gone does not exist in the container" in capsys.readouterr().err
    assert asked(runtime, image, 255, str(tmp_path / "plain")) == 126
    assert "plain is not an executable file" in capsys.readouterr().err
    assert asked(runtime, image, 255, str(tmp_path / "train")) == 255, "it ended with 255 itself"
    assert asked(runtime, image, 255, "sh") == 255
    assert capsys.readouterr().err == ""


def test_a_program_that_a_shell_could_not_become_is_named(
    runtime: Runtime, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = tmp_path / "image"
    image.write_text("odd")
    (tmp_path / "plain").touch()
    assert asked(runtime, image, 127, str(tmp_path / "gone"), by_shell=True) == 127
    assert "gone does not exist in the container" in capsys.readouterr().err
    assert asked(runtime, image, 126, str(tmp_path / "plain"), by_shell=True) == 126
    assert "plain is not an executable file" in capsys.readouterr().err
    for status in (0, 3, 126, 127, 255):
        assert asked(runtime, image, status, "sh", by_shell=True) == status, "it ended so itself"
    assert capsys.readouterr().err == ""
