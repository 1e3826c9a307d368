"""The output of bare `ctk`: recipes and images here, and the next step."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.next_step import next_for_image
from toolkit.cli.output import say, suggest
from toolkit.support.processes import visible_command
from toolkit.support.text import path_argument


def welcome() -> None:
    """Print a few lines about this directory and the next step."""
    from toolkit.builds.record import read_record
    from toolkit.recipes.catalogue import Catalogue

    here = Path.cwd()
    catalogue = Catalogue.here()
    recipes = catalogue.paths()
    images = sorted(path.relative_to(here) for path in here.glob("*.sif"))
    scripts = sorted(path.relative_to(here) for path in here.glob("*.sbatch"))
    say(f"{len(recipes)} recipes: {', '.join(recipes)}")
    say(f"Images here: {', '.join(map(str, images)) or 'none'}")
    say(f"Job scripts here: {', '.join(map(str, scripts)) or 'none'}")
    if scripts:
        following = ["sbatch", path_argument(scripts[0])]
    elif images:
        record = read_record(images[0])
        following = next_for_image(images[0], record.verdict if record else None)
    else:
        following = ["ctk", "build", "keras-bert"]
    if sys.stdout.isatty():
        suggest(following)
    else:
        say(f"Next: {visible_command(following)}")
    say("All commands: ctk --help")
