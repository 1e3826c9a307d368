"""A registry on loopback for the tests of this directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.pins.bases import oci

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[oci.Registry]:
    """A registry, and a user without any login, whose home is `tmp_path`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    with oci.serving(oci.Registry()) as served:
        yield served
