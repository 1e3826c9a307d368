"""Where ctk keeps things: the shipped data, the site's settings, and one work area for everything big."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost, WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.support.site import Setting, Site

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(directory: str) -> Path:
    """The shipped `defs` or `sbatch` directory: inside an installed package, else at the top of the checkout."""
    inside = _PACKAGE / "shipped" / directory
    return inside if inside.is_dir() else _PACKAGE.parent / directory


def user_path(text: str) -> Path:
    """The absolute path that a user means by `text`, which may begin with `~` or `~user`.

    Raises WrongInput where there is no such user.
    """
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise WrongInput(f"{text}: there is no such user's home") from error


def home() -> Path | None:
    """This user's home; None where neither HOME nor the password file names one, as in some batch containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _below_home(find: Callable[..., str], variable: str) -> Path:
    """What `find` of platformdirs says. Raises MissingOnHost where it would be in a home and there is none.

    `variable` is what a user can set instead of HOME.
    """
    try:
        directory = Path(find("ctk", appauthor=False))
    except RuntimeError:  # so says a new platformdirs; an old one gives `~/.cache` as it stands
        directory = Path("~")
    if directory.is_absolute():
        return directory
    raise MissingOnHost(
        "this user has no home: HOME names none, and neither does the password file",
        fix=f"Set HOME, or {variable}, to a directory that is yours.",
        code="no-home",
    )


def state_directory() -> Path:
    """The XDG directory for small things that should outlive a reboot (the lab's registry, what was shown once)."""
    import platformdirs

    return _below_home(platformdirs.user_state_dir, "XDG_STATE_HOME")


@dataclass(frozen=True, slots=True)
class WorkArea:
    """The directory for everything big, and what chose it."""

    path: Path
    chosen_by: str

    @property
    def directories(self) -> tuple[Path, ...]:
        """The area itself, and what is always in it."""
        return (self.path, *(self.path / name for name in ("bases", "cache", "tmp", "uv")))

    def create(self) -> None:
        """Make the directories, closed to others. Raises MissingOnHost where they cannot be made."""
        for directory in self.directories:
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise MissingOnHost(
                    f"the work area {self.path} (chosen by {self.chosen_by}) cannot be used: {error.strerror}",
                    fix="Set CTK_HOME to a directory that is yours and has room, for example on scratch.",
                ) from error


def work_area(site: Site) -> WorkArea:
    """CTK_HOME, else the site's directory, else $SCRATCH/ctk, else the XDG cache. Use it after `trust.secure` alone.

    A home quota of 20 GB does not survive a GPU image and its cache, so the home comes last. Raises WrongInput where
    the directory is said to be in the home of a user that is unknown here, or the site's is not an absolute path, and
    MissingOnHost where there is no home at all.
    """
    if os.environ.get("CTK_HOME"):
        return WorkArea(user_path(os.environ["CTK_HOME"]), "CTK_HOME")
    if site.work_area is not None:
        return WorkArea(_site_directory(site.work_area), site.work_area.origin)
    scratch = os.environ.get("SCRATCH")
    if scratch and Path(scratch).is_dir():
        return WorkArea(Path(scratch).absolute() / "ctk", "SCRATCH")
    import platformdirs

    return WorkArea(_below_home(platformdirs.user_cache_dir, "CTK_HOME"), "the XDG cache directory")


def _site_directory(setting: Setting[str]) -> Path:
    text = os.path.expandvars(setting.value)
    if "$" in text or not text.startswith(("/", "~")):
        raise WrongInput(
            f"{setting.origin}: work_area: {setting.value!r} does not lead to an absolute path here",
            fix="Ask whom the site names for help, or set CTK_HOME to a directory of your own.",
        )
    return user_path(text)
