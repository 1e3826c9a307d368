"""What a user may write for a job besides its resources: name and binds."""

from __future__ import annotations

import re

from toolkit.scheduler.values import refuse
from toolkit.support.text import one_line

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")


def check_name(value: str, option: str = "--job-name") -> str:
    """A job's name. It becomes part of the log's file name: Slurm copies any character there, `/` and newline too."""
    if not _NAME.fullmatch(value):
        refuse(
            option,
            value,
            "at most 128 letters, digits, dots, dashes and underscores, not starting with a dot or a dash",
            fix="For example: --job-name keras-bert.lr-0.1",
        )
    return value


def name_for(text: str) -> str:
    """The job's name nearest to `text`, which may be any file's: `my image` -> `my-image`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")[:128] or "job"


def check_bind(value: str, option: str = "--bind") -> str:
    """A directory that the container is to see: SRC, SRC:DST or SRC:DST:ro."""
    one_line(value, option)
    source, *rest = value.split(":")
    # The runtime reads a comma as the beginning of the next bind.
    good = bool(source) and not source.startswith("-") and "," not in value and len(rest) <= 2
    good = good and all(part.startswith("/") for part in rest[:1]) and all(part in ("ro", "rw") for part in rest[1:])
    if not good:
        refuse(
            option,
            value,
            "SRC, SRC:DST or SRC:DST:ro, with an absolute DST and no comma",
            fix="For example: --bind /scratch/data:/data:ro; repeat --bind for several directories.",
        )
    return value
