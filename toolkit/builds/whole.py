"""A whole build, from the request to the image: begun again if another process removes from the store what it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.builds.execute import execute, refuse_second
from toolkit.builds.resolve import resolve
from toolkit.store.keeping import forget_lost
from toolkit.support.errors import CtkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.builds.context import BuildContext, Listener
    from toolkit.builds.execute import Built
    from toolkit.builds.plan import BuildPlan
    from toolkit.builds.request import BuildRequest

_ATTEMPTS = 3


def build(
    request: BuildRequest, context: BuildContext, listener: Listener, planned: Callable[[BuildPlan], None]
) -> tuple[BuildPlan, Built]:
    """Resolve and execute; `planned` gets the plan before it is executed. Raises as both do.

    Pruning spares what a running build uses. What is removed all the same, by hand or by another host whose clock is
    wrong, is pulled or made again.
    """
    refuse_second(request)
    forget_lost()  # what an earlier build of this process lost
    for left in reversed(range(_ATTEMPTS)):
        try:
            plan = resolve(request, context, listener)
            planned(plan)
            return plan, execute(plan, context, listener)
        except (CtkError, OSError):
            if not forget_lost() or left == 0:
                raise
            listener.note_failed("the store lost an entry that the build used: building again")
    raise AssertionError
