"""What ends a layered build: a step that fails, or a guard that found a difference."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from toolkit.builds.layers.make import NotLayered, StepFailed
from toolkit.builds.progress import failed_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.builds.state import BuildState
    from toolkit.pins.guard.over_layers import Judgement

# What a step's overlay cannot do, and a flat build can: rename(2) of a directory of the base, make a device.
_LIMITS = re.compile(r"Invalid cross-device link|\bmknod: .*not permitted")
_LAST_LINES = 5


def require_passed(judgement: Judgement, state: BuildState) -> None:
    """Write what the guard says into the log. Raises the error of the build unless it passed."""
    for line in judgement.lines:
        state.transcript.take(line)
    if not judgement.passed:
        raise state.failure(1)


@contextlib.contextmanager
def explained(state: BuildState) -> Iterator[None]:
    """Turn a step that failed in the block into the error of the build, or NotLayered where a flat one may work."""
    try:
        yield
    except StepFailed as error:
        lines = failed_output(state.transcript.last_lines)
        if (limit := next(filter(_LIMITS.search, lines[-_LAST_LINES:]), None)) is not None:
            message = f"a command failed that may work in a flat image: {limit.strip()}"
            raise NotLayered(message, fix="Build it with --flat.") from None
        raise state.failure(error.status) from None
