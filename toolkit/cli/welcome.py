"""The output of bare `ctk`: recipes and images here, and the next step."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.next_step import next_for_image
from toolkit.cli.output import say, suggest
from toolkit.support.processes import visible_command
from toolkit.support.text import path_argument

_SUBMIT = {".sbatch": "sbatch", ".sge": "qsub", ".pbs": "qsub"}
_SCRIPT = "train.py"


def welcome() -> None:
    """Print a few lines about this directory and the next step."""
    from toolkit.recipes.catalogue import Catalogue

    here = Path.cwd()
    catalogue = Catalogue.here()
    recipes = catalogue.paths()
    images = sorted(path.relative_to(here) for path in here.glob("*.sif"))
    scripts = sorted(path.relative_to(here) for suffix in _SUBMIT for path in here.glob(f"*{suffix}"))
    say(f"{len(recipes)} recipes: {', '.join(recipes)}")
    say(f"Images here: {', '.join(map(str, images)) or 'none'}")
    say(f"Job scripts here: {', '.join(map(str, scripts)) or 'none'}")
    own = [path for path in recipes.values() if catalogue.is_own(path)]
    following = _next(scripts, images, own, here)
    if sys.stdout.isatty():
        suggest(following)
    else:
        say(f"Next: {visible_command(following)}")
    say("All commands: ctk --help")


def _next(scripts: list[Path], images: list[Path], own: list[Path], here: Path) -> list[str]:
    """The command for what was made last, or for the directory's script."""
    from toolkit.builds.record import read_record

    if scripts:
        script = max(scripts, key=_changed)
        return [_SUBMIT[script.suffix], path_argument(script)]
    if images:
        image = max(images, key=_changed)
        record = read_record(image)
        return next_for_image(image, record.verdict if record else None)
    if own:
        return ["ctk", "build", max(own, key=_changed).stem]
    if (here / _SCRIPT).is_file():
        return ["ctk", "new", _recipe_name(here), "--from", _SCRIPT]
    return ["ctk", "build", "keras-bert"]


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # a symlink that leads nowhere
        return 0


def _recipe_name(directory: Path) -> str:
    """The directory's name, as a recipe can have it."""
    from toolkit.recipes.catalogue import is_recipe_name

    name = "-".join("".join(letter if letter.isalnum() else " " for letter in directory.name.lower()).split())
    return name if name.isascii() and is_recipe_name(name) else "mine"
