"""Notebooks: cells that are Python, and those that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.authoring.notebooks import _python_of, read_notebook
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 1}', '{"metadata": 3, "cells": []}', "[" * 100_000])
def test_invalid_notebook_is_refused_or_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    if text == '{"metadata": 3, "cells": []}':
        assert read_notebook(path).cells == ()
        return
    with pytest.raises(WrongInput, match="not a notebook"):
        read_notebook(path)


@given(st.text())
def test_any_cell_is_python_or_not(text: str) -> None:
    assert _python_of(text) is None or text.endswith(str(_python_of(text)))
