"""Check that an image can be written to its output path: no file of the user is replaced."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.builds.record import read_record, record_beside
from toolkit.builds.target import TargetKind
from toolkit.inventory.formats.kinds import PathKind, damaged_header, kind_of
from toolkit.inventory.formats.sif_digests import require_undamaged
from toolkit.support.errors import WrongInput
from toolkit.support.files import leads_into_hidden, open_regular, refuse_link
from toolkit.support.ownership import is_trusted, user_name

if TYPE_CHECKING:
    from toolkit.builds.request import BuildRequest

LOG_MARK = "# ctk build log"


def check_output(request: BuildRequest) -> None:
    """Raise WrongInput if the output cannot be written, or would replace a file of the user."""
    final = request.output
    if not final.name:
        raise WrongInput("/ cannot be replaced by an image", fix="Give -o the name of a file or of a new directory.")
    _check_links(request)
    if not final.parent.is_dir():
        raise WrongInput(f"cannot write {final.name}: there is no directory {final.parent}")
    if request.target.kind is TargetKind.SANDBOX and final.resolve().is_relative_to(
        Path(request.target.text).resolve()
    ):
        raise WrongInput(f"the output {final} is inside the sandbox", fix="Name the new image with -o ../NAME.sif.")
    if final.is_dir() and not request.sandbox:
        raise WrongInput(
            f"{final} is a directory", fix="Give -o the name of a file, or build a directory with --sandbox."
        )
    for path in (final, request.log):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise WrongInput(f"{path} is neither a file nor a directory", fix="Choose another name with -o.")
    # --force too stops here: a slip such as `-o .` must not cost a user's directory.
    if final.is_dir() and kind_of(final) is not PathKind.SANDBOX and any(final.iterdir()):
        raise WrongInput(f"{final} is a directory that contains other files", fix="Choose another name with -o.")
    if request.log.exists() and not request.force and not _is_ctks_log(request.log):
        raise WrongInput(f"{request.log} exists and is not a ctk log", fix="Move it away, or use --force.")
    if not final.exists() or request.force:
        return
    record = read_record(final)
    if record is None:
        _refuse_damaged(final)
        raise WrongInput(f"{final} exists and was not built by ctk", fix="Choose another name with -o, or use --force.")
    if record.target != _expected_target(request):
        raise WrongInput(
            f"{final} exists and was built from another target ({record.target})",
            fix="Choose another name with -o, or use --force.",
        )
    if record.changed:
        raise WrongInput(
            f"{final} was opened with `ctk shell`; changes made in it would be lost",
            fix=f"Build an image from it (ctk build {shlex.quote(f'{final}/')} -o NAME.sif), choose "
            "another name with -o, or use --force.",
        )


def _refuse_damaged(final: Path) -> None:
    """Raise WrongInput (`corrupt-image`) if `final` is an image of whose record nothing is left."""
    fix = "To replace it, use --force."
    try:
        if kind_of(final) is PathKind.DAMAGED:
            raise damaged_header(final)
        require_undamaged(final, None, fix)
    except WrongInput as error:
        if error.code == "corrupt-image":
            error.fix = fix
            raise


def _expected_target(request: BuildRequest) -> str:
    """The target of an image that may be replaced. The flat form of an image remembers what the layered one does."""
    if request.target.kind is TargetKind.IMAGE and (record := read_record(Path(request.target.text))) is not None:
        return record.target
    return request.target.identity


def _check_links(request: BuildRequest) -> None:
    """Raise WrongInput if a symlink would redirect the build's output to a file that ctk did not create.

    --force does not override this: a cloned repository may contain links that the user does not know.
    """
    refuse_link(request.log)
    if request.sandbox:
        refuse_link(record_beside(request.output))
    if request.link is not None and (reason := _why_not_through(request.link, request.output)) is not None:
        raise WrongInput(
            f"{request.link} is a symlink to {request.output}, {reason}",
            fix="Remove the link, or name the image itself with -o.",
            code="symlink",
        )


def _why_not_through(link: Path, final: Path) -> str | None:
    """Why no image is written through `link`; None if it leads to an image of ctk, or to the name of a new one."""
    if link.is_symlink() and not is_trusted(owner := link.lstat().st_uid):
        return f"created by {user_name(owner)}"
    if os.path.lexists(final):
        return None if read_record(final) else "which was not built by ctk"
    # A SIF holds its definition as plain text: a shell that reads one called `.bash_profile` runs lines of it.
    if final.suffix != ".sif" and final.name != link.name:
        return "which is not an image name"
    return "in a hidden directory" if leads_into_hidden(link) else None


def _is_ctks_log(path: Path) -> bool:
    """Whether a log begins like a ctk log. An empty one may be replaced: a build was killed at its start."""
    try:
        with open_regular(path) as file:
            first = file.readline()
    except OSError:
        return False
    return not first or first.startswith(LOG_MARK.encode())
