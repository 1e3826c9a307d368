"""What a recipe copies into an image: told, and refused where it is private and not allowed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import print_findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.recipes.model import Recipe

AllowFile = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow-file",
        metavar="PATH",
        help="Let [[files]] copy this private file or directory; repeatable.",
        rich_help_panel="Checks",
    ),
]


def require_copies(recipe: Recipe, allow_file: Sequence[Path]) -> None:
    """Tell what `recipe` copies from outside its project.

    Raises WrongInput for what is private and not in `allow_file` (`private-file`), and for a symlink to nothing
    (`dangling-symlink`).
    """
    from toolkit.recipes.outside import copied_files, judge_copies, require_allowed, require_targets, without_allowed
    from toolkit.support.paths import user_path

    copied = without_allowed(copied_files(recipe), [user_path(str(path)) for path in allow_file])
    print_findings(judge_copies(copied), stderr=True)
    require_targets(recipe)
    require_allowed(recipe, copied)
