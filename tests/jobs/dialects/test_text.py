"""The parts of a script that are the same in each language."""

from __future__ import annotations

from dataclasses import replace

from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Job

JOB = Job("x", "./x.sif", ("true",))


def test_header_says_what_image_the_script_is_for() -> None:
    text = script_text(replace(JOB, provenance=("Image ./x.sif",)), SLURM, "Marker")
    assert text.startswith("#!/bin/bash\n# Marker\n# Image ./x.sif\n#SBATCH ")


def test_modules_of_the_site_are_loaded_before_the_runtime_is_looked_for() -> None:
    job = replace(JOB, modules=("cuda/12.4", "apptainer"), module_setup="/etc/site modules.sh")
    text = script_text(job, SLURM, "")
    assert "for file in '/etc/site modules.sh'; do\n" in text
    assert text.index("module load cuda/12.4 ||") < text.index("\nruntime=$(find_runtime)")
