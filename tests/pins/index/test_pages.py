"""Pages of an index, as HTML and as JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.index.pages import read_page

PAGE = "https://index.example/simple/six/"


def test_html_page_lists_files_with_hashes() -> None:
    (row,) = read_page('<a href="../../f/six-1.0.tar.gz#sha256=ab">six</a>', PAGE)
    assert row["url"] == "https://index.example/f/six-1.0.tar.gz"
    assert (row["filename"], row["hashes"]) == ("six-1.0.tar.gz", {"sha256": "ab"})


def test_json_page_without_files_is_refused() -> None:
    with pytest.raises(ValueError, match="no list of files"):
        read_page('{"message": "please log in"}', PAGE)


@given(st.text())
def test_any_text_is_a_page_or_refused(text: str) -> None:
    try:
        rows = read_page(text, PAGE)
    except (ValueError, AttributeError, RecursionError):
        return
    assert all(isinstance(row["url"], str) for row in rows)
