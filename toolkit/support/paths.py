"""The directories of ctk: the shipped data, the state directory, and one work area for large files."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.ownership import make_plain
from toolkit.support.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.support.site import Site

# Of binds, and in shell scripts that the runtime writes (tried with Apptainer 1.4.5); and bytes that are not UTF-8,
# which programs written in Go replace.
_UNUSABLE = re.compile(r"[:,'\"\x00-\x1f\x7f\udc80-\udcff]")
OVERLAY_SEPARATORS = {":": "colon", ",": "comma"}  # in the value of the runtime's option --overlay
LARGER_AREA = (
    "Set CTK_HOME to a directory with more free space, for example on scratch. If `ctk cache list` shows what you no "
    "longer need: `ctk cache prune --older 7d` removes what was not used for a week."
)
_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(directory: str) -> Path:
    """The shipped `defs` or `sbatch` directory: inside an installed package, else at the top of the checkout."""
    inside = _PACKAGE / "shipped" / directory
    return inside if inside.is_dir() else _PACKAGE.parent / directory


def user_path(text: str) -> Path:
    """The absolute path that a user means by `text`, which may begin with `~` or `~user`.

    Raises WrongInput if there is no such user.
    """
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:
        raise WrongInput(f"{text}: there is no such user, or it has no home directory") from error


def home() -> Path | None:
    """This user's home; None if neither HOME nor the password file names one, as in some batch containers."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def _below_home(find: Callable[..., str], variable: str) -> Path:
    """The directory that `find` of platformdirs returns. Raises MissingOnHost if it is in a home and there is none.

    `variable` is what a user can set instead of HOME.
    """
    try:
        directory = Path(find("ctk", appauthor=False))
    except RuntimeError:  # a new platformdirs raises this; an old one returns `~/.cache` unexpanded
        directory = Path("~")
    if directory.is_absolute():
        return directory
    raise MissingOnHost(
        "this user has no home directory: neither HOME nor the password file names one",
        fix=f"Set HOME, or {variable}, to a directory of your own.",
        code="no-home",
    )


def state_directory() -> Path:
    """The XDG directory for small files that should survive a reboot (the lab's registry, what was shown once)."""
    import platformdirs

    return _below_home(platformdirs.user_state_dir, "XDG_STATE_HOME")


@dataclass(frozen=True, slots=True)
class WorkArea:
    """The directory for large files, and the setting that chose it."""

    path: Path
    chosen_by: str

    @property
    def directories(self) -> tuple[Path, ...]:
        """The area itself, and the directories that are always in it."""
        return (self.path, *(self.path / name for name in ("bases", "cache", "tmp", "uv")))

    def create(self) -> None:
        """Create the directories with mode 0700. Raises MissingOnHost if that fails, or one of them is not writable."""
        from toolkit.support.files import make_directory

        for directory in self.directories:
            try:
                make_directory(directory)
                if directory.name == "tmp" and not directory.is_symlink():
                    make_plain(directory)  # images are unpacked in it
                if not os.access(directory, os.W_OK | os.X_OK):
                    is_read_only = os.statvfs(directory).f_flag & os.ST_RDONLY
                    number = errno.EROFS if is_read_only else errno.EACCES
                    raise OSError(number, os.strerror(number))
            except OSError as error:
                raise MissingOnHost(
                    f"the work area {self.path} (chosen by {self.chosen_by}) is not writable: {error.strerror}",
                    fix="Set CTK_HOME to a writable directory with free space, for example on scratch.",
                    code="work-area-not-writable",
                ) from error


def work_area(site: Site) -> WorkArea:
    """CTK_HOME, else the site's directory, else $SCRATCH/ctk, else the XDG cache. Use it only after `trust.secure`.

    A home quota of 20 GB does not survive a GPU image and its cache, so the home comes last. Raises WrongInput if
    the directory is in the home of an unknown user, the site's is not an absolute path, a file is in its place, or the
    runtime cannot use its name (`work-area-name`), and MissingOnHost if there is no home directory.
    """
    area = _chosen_area(site)
    if (found := _UNUSABLE.search(str(area.path))) is not None:
        byte = os.fsencode(found[0])
        said = repr(found[0]) if byte.isascii() else f"the byte 0x{byte.hex()}, which is not UTF-8"
        raise WrongInput(
            f"the work area {printable(str(area.path))} (chosen by {area.chosen_by}) contains {said}: the "
            "container runtime cannot use such a path",
            fix="Set CTK_HOME to a directory whose path is UTF-8 and has no colon, comma, quote or control character.",
            code="work-area-name",
        )
    _refuse_file(area)
    return area


def _refuse_file(area: WorkArea) -> None:
    """Raise WrongInput if the area, or what it would be created in, is a file or a dangling symlink."""
    found = next(path for path in (area.path, *area.path.parents) if os.path.lexists(path))
    try:
        if stat.S_ISDIR(found.stat().st_mode):
            return
        problem = "is a file, not a directory"
    except FileNotFoundError:
        problem = f"is a symlink to {os.path.realpath(found)}, which does not exist"
    except OSError:  # `trust.secure` and `create` report what else is wrong
        return
    raise WrongInput(
        f"the work area {area.path} (chosen by {area.chosen_by}) "
        + (problem if found == area.path else f"cannot be created: {found} {problem}"),
        fix="Set CTK_HOME to a directory, for example on scratch; ctk creates one that does not exist.",
        code="wrong-usage",
    )


def _chosen_area(site: Site) -> WorkArea:
    if os.environ.get("CTK_HOME"):
        return WorkArea(user_path(os.environ["CTK_HOME"]), "CTK_HOME")
    if site.work_area is not None:
        return WorkArea(site_path(site.work_area.value, "work_area", site.work_area.origin), site.work_area.origin)
    scratch = os.environ.get("SCRATCH")
    if scratch and Path(scratch).is_dir():
        return WorkArea(Path(scratch).absolute() / "ctk", "SCRATCH")
    import platformdirs

    return WorkArea(_below_home(platformdirs.user_cache_dir, "CTK_HOME"), "the XDG cache directory")


def site_path(text: str, key: str, origin: str) -> Path:
    """The absolute path that the site means by `text` under `key`: it may contain variables such as $USER.

    Raises WrongInput if one of them is not set here.
    """
    expanded = os.path.expandvars(text)
    if "$" in expanded or not expanded.startswith(("/", "~")):
        raise WrongInput(
            f"{origin}: {key}: {text!r} does not expand to an absolute path on this host",
            fix="Ask the site's support, or set CTK_HOME to a directory of your own.",
        )
    return user_path(expanded)
