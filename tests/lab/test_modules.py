"""Environment modules of a lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.lab.modules import Software, modulefile, recognise


@pytest.mark.parametrize(
    ("words", "software"),
    [
        ("apptainer version 1.4.5\n", Software("apptainer", "1.4.5")),
        ("singularity-ce version 3.11.4-rc.1\n", Software("singularity", "3.11.4-rc.1")),
        ("singularity version 3.8.7-1.el8\n", Software("singularity", "3.8.7-1.el8")),
        ("mpirun (Open MPI) 4.1.4\n\nReport bugs to ...\n", Software("openmpi", "4.1.4")),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", Software("mpich", "4.0.2")),
        ("something else 1.0", None),
        ("", None),
    ],
)
def test_software_is_recognised_by_its_version_output(words: str, software: Software | None) -> None:
    assert recognise(words) == software


def test_a_modulefile() -> None:
    assert modulefile(Software("apptainer", "1.4.5"), Path("/lab/bin")) == (
        "#%Module1.0\n"
        'module-whatis "apptainer 1.4.5, as installed on this machine"\n'
        "conflict apptainer\n"
        "prepend-path PATH /lab/bin\n"
    )
