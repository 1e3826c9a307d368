"""How many examples a property test tries: all of them in `make test`, a share in `make check`."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_FULL = 100  # what a property test takes that sets no number


def examples(count: int, **options: Any) -> settings:
    """Settings for a test that tries `count` examples in `make test`.

    A number given to `settings` itself would override the profile that `make check` selects.
    """
    return settings(max_examples=max(1, count * settings.default.max_examples // _FULL), **options)
