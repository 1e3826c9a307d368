"""The documents of `ctk cache`."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.cli.documents.cache import cache
from toolkit.store.entries import Kind
from toolkit.store.listing import Listed
from toolkit.store.store import Store


@pytest.mark.parametrize(
    ("moment", "text"), [(0.0, "1970-01-01T00:00:00Z"), (-5e9, "1970-01-01T00:00:00Z"), (1e300, "9999-12-31T23:59:59Z")]
)
def test_any_time_of_a_file_is_a_date(moment: float, text: str) -> None:
    listed = Listed(Path("/store"), Kind.BASE, "0" * 64, 1, moment)
    (row,) = cache(Store(Path("/store")), [listed], None)["entries"]
    assert row["last_use"] == text


def test_a_document_shows_no_secret_and_sums_up_what_is_this_user_s() -> None:
    about = {"reference": "https://me:hunter2@example.org/"}
    own, shared = (Listed(Path(root), Kind.BASE, "0" * 64, 10, 0.0, about) for root in ("/own", "/shared"))
    document = cache(Store(Path("/own"), (Path("/shared"),)), [own, shared], 5)
    assert "hunter2" not in str(document)
    assert (document["size_bytes"], document["keep_bytes"], document["shared"]) == (10, 5, ["/shared"])
