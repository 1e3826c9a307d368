"""The next command for an image, which must work as it stands: what an image can be used for decides."""

from __future__ import annotations

from pathlib import Path

from toolkit.support.errors import WrongInput
from toolkit.support.findings import Verdict
from toolkit.support.text import path_argument


def next_for_image(image: Path, verdict: Verdict | None) -> list[str]:
    """What to do with an image of this verdict of `ctk audit`; None if it was not audited."""
    if verdict in (None, Verdict.GPU_READY):
        return ["ctk", "check-gpu", path_argument(image)]
    if verdict is not Verdict.NO_FRAMEWORK:
        return ["ctk", "audit", path_argument(image)]
    if _has_command(image):
        return [*_job(image), "--gpus", "0"]
    return ["ctk", "shell", path_argument(image)]


def next_job(image: Path) -> list[str]:
    """The job script for an image that sees the GPU; for one that cannot use it, what `ctk build` suggests."""
    verdict = _verdict(image)
    if verdict in (Verdict.CPU_ONLY, Verdict.GPU_BROKEN, Verdict.NO_FRAMEWORK):
        return next_for_image(image, verdict)
    return [*_job(image), *([] if _has_command(image) else ["python", "train.py"])]


def _verdict(image: Path) -> Verdict | None:
    from toolkit.builds.record import read_record
    from toolkit.gpu.audit import audit_image
    from toolkit.gpu.targets import machines
    from toolkit.recipes.model import Target

    record = read_record(image)
    if record is not None and record.verdict is not None:
        return record.verdict
    try:
        return audit_image(image, *machines(Target())).verdict
    except WrongInput:  # an image that the runtime can start and ctk cannot read
        return None


def _job(image: Path) -> list[str]:
    from toolkit.cli.schedulers import job_command
    from toolkit.jobs.values import name_for

    return ["ctk", job_command(), "--job-name", name_for(image.stem.lower()), "--image", path_argument(image)]


def _has_command(image: Path) -> bool:
    """Whether `ctk sbatch` knows what to run: by the recipe, or by a `train.py` here."""
    from toolkit.builds.record import recipe_of
    from toolkit.recipes.catalogue import Catalogue

    try:
        recipe = recipe_of(image, Catalogue.here())
    except WrongInput:  # the recipe was broken since
        recipe = None
    return bool(recipe and recipe.job.command) or Path("train.py").is_file()
