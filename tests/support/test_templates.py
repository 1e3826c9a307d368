"""Shipped templates: values as they are, and none forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jinja2 import UndefinedError

from toolkit.support import templates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory in the place of what ctk ships."""
    monkeypatch.setattr(templates, "shipped", lambda top: tmp_path / top)
    templates._templates.cache_clear()
    (tmp_path / "defs/templates").mkdir(parents=True)
    yield tmp_path / "defs/templates"
    templates._templates.cache_clear()


def test_values_are_not_escaped_and_the_last_newline_stays(shipped: Path) -> None:
    (shipped / "x.j2").write_text("{% if name %}\n<{{ name }}>\n{% endif %}\n\n")
    assert templates.render("defs/templates/x.j2", name="'a' & <b>") == "<'a' & <b>>\n\n"


def test_a_value_that_is_missing_is_an_error(shipped: Path) -> None:
    (shipped / "x.j2").write_text("{{ name }}\n")
    with pytest.raises(UndefinedError, match="name"):
        templates.render("defs/templates/x.j2")
