"""The image that a command uses: refused if it is damaged, with warnings about other users who can change it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import CtkError, WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.support.findings import Finding

_COPY = "or copy it again from where it was built"


def used_image(image: Path, user: str) -> tuple[Finding, ...]:
    """Warnings about the owner of `image`, for `user`, which runs it ("the job").

    Raises WrongInput if there is no image, or it is not what `ctk build` made (`corrupt-image`). The content is read
    only if the file is another one since it was read last.
    """
    from toolkit.inventory.formats.kinds import existing_image
    from toolkit.recipes.owners import judge_image

    require_undamaged(existing_image(image))
    return judge_image(image, user)


def require_undamaged(image: Path) -> None:
    """Raise WrongInput (`corrupt-image`) if an image is not what `ctk build` made."""
    from toolkit.inventory.formats.sif_digests import require_undamaged as require

    with _reading(f"Checking {image.name}") as progress:
        try:
            require(image, _cache(), "", progress)
        except WrongInput as error:
            if error.code == "corrupt-image":
                error.fix = _fix(image)
            raise


def damage_of(image: Path) -> str | None:
    """What of an image is not as `ctk build` made it, with the progress of reading it. Raises as `find_damage`."""
    from toolkit.inventory.formats.sif_digests import find_damage

    with _reading(f"Checking {image.name}") as progress:
        return find_damage(image, _cache(), progress)


def _fix(image: Path) -> str:
    """How to get the image again. A build replaces it unasked only if it can still read the image's record."""
    from toolkit.builds.record import read_record
    from toolkit.support.processes import command_line

    record = read_record(image)
    name = record.recipe_name if record is not None else None
    if name is None:
        return f"Build it again (`ctk build` with --force), {_COPY}."
    output = [] if image.absolute() == Path.cwd() / f"{name}.sif" else ["-o", str(image)]
    return f"Build it again, {_COPY}: {command_line(['ctk', 'build', name, *output])}"


def _cache() -> Path | None:
    """Where is remembered which images were read; None without a work area."""
    from toolkit.cli.area import open_work_area
    from toolkit.support.site import load_site

    try:
        return open_work_area(load_site()).path / "cache"
    except CtkError:
        return None


@contextmanager
def _reading(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how much is read, from the first byte on."""
    from toolkit.cli.output import live_steps
    from toolkit.support.files import format_size

    with live_steps(title) as on_step:
        yield lambda done, size: on_step(f"{format_size(done)} of {format_size(size)}")
