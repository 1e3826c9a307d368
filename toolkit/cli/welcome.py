"""What bare `ctk` says: what is here, and what comes next."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.output import say, suggest


def welcome() -> None:
    """Print a few lines about this folder and the next step."""
    from toolkit.recipes.catalogue import Catalogue

    here = Path.cwd()
    catalogue = Catalogue.here()
    recipes = catalogue.paths()
    images = sorted(path.name for path in here.glob("*.sif"))
    scripts = sorted(path.name for path in here.glob("*.sbatch"))
    say(f"{len(recipes)} recipes: {', '.join(recipes)}")
    say(f"Images here: {', '.join(images) or 'none'}")
    say(f"Job scripts here: {', '.join(scripts) or 'none'}")
    if scripts:
        following = f"sbatch {scripts[0]}"
    elif images:
        following = f"ctk check-gpu {images[0]}"
    else:
        following = "ctk build keras-bert"
    if sys.stdout.isatty():
        suggest(following)
    else:
        say(f"Next: {following}")
    say("All commands: ctk --help")
