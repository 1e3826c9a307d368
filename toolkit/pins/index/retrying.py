"""Requests that are repeated: what may succeed in a moment, and what another attempt does not change."""

from __future__ import annotations

import random
import ssl
import time
import urllib.error
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TYPE_CHECKING

from toolkit.support import parallel

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

DELAYS = (0.5, 2.0, 6.0)  # seconds before the second, third and fourth attempt
_LONGEST_DELAY = 60.0  # seconds; a server may ask for more in Retry-After
_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)


def repeat(
    action: Callable[[], T], wait: Callable[[float], object] = parallel.wait, delays: tuple[float, ...] = DELAYS
) -> T:
    """The result of `action`, which is tried again after a temporary failure; `wait` gets seconds.

    Raises what the last attempt raised: OSError (a status of 400 and above is HTTPError) or HTTPException.
    """
    for delay in delays:
        try:
            return action()
        except (OSError, HTTPException) as error:
            if not is_temporary(error):
                raise
            # Not all at once: several threads of several users may wait for the same server.
            wait(max(delay * random.uniform(0.8, 1.2), min(_retry_after(error), _LONGEST_DELAY)))  # noqa: S311
    return action()


def is_temporary(error: Exception) -> bool:
    """Whether another attempt may succeed: a lost connection, a server that fails or is busy."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code in _TEMPORARY
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return False
    # An OSError with a file name is one of this host: a full disk, a missing directory.
    return not (isinstance(reason, OSError) and reason.filename is not None) and not isinstance(reason, str)


def _retry_after(error: Exception) -> float:
    """Seconds after which the server wants to be asked again (RFC 9110, 10.2.3); 0 if it does not say."""
    said = error.headers.get("Retry-After") if isinstance(error, urllib.error.HTTPError) and error.headers else None
    if not said or not isinstance(said, str):  # one that cannot be decoded is a Header
        return 0.0
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0
