"""The same files for every reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.inventory.making import fill
from tests.inventory.one_image import FILES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("sandbox"), FILES)
