"""What bare `ctk` says: what is here, and what comes next."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.output import say, suggest
from toolkit.support.processes import visible_command
from toolkit.support.text import path_argument


def welcome() -> None:
    """Print a few lines about this folder and the next step."""
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
        following = ["ctk", "check-gpu", path_argument(images[0])]
    else:
        following = ["ctk", "build", "keras-bert"]
    if sys.stdout.isatty():
        suggest(following)
    else:
        say(f"Next: {visible_command(following)}")
    say("All commands: ctk --help")
