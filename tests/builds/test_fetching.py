"""What is brought for builds, and what they still take from the network."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, request
from tests.builds.small_store import keep, lock_of, package
from tests.pins.locks import COMMIT
from toolkit.builds import fetching
from toolkit.builds.context import Listener
from toolkit.builds.fetching import fetch
from toolkit.builds.plan import BuildPlan
from toolkit.builds.record import Record
from toolkit.pins.bases.steady import PresentBase
from toolkit.pins.index.downloads import Brought
from toolkit.pins.store import Found

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("preview", [True, False])
def test_only_what_is_missing_is_downloaded(here: Path, monkeypatch: pytest.MonkeyPatch, preview: bool) -> None:
    (here / "defs/mine.toml").write_text('base = "../base.sif"\napt = ["jq"]\npackages = ["one", "two"]\n')
    made = context(here, preview=preview)
    lock = lock_of(package("one", b"one"), package("two", b"two"), COMMIT)
    keep(made.store, b"one", "one-1-py3-none-any.whl")
    asked = request("mine", output=here / "x.sif")
    assert asked.recipe is not None
    plan = BuildPlan(
        asked, None, Record("recipe:mine"), PresentBase(here / "base.sif"), Found(lock, here / "mine.lock.toml")
    )  # type: ignore[arg-type]
    monkeypatch.setattr(fetching, "resolve", lambda *_arguments: plan)
    wanted: list[str] = []

    def bring(missing, _indexes, store, _progress):  # type: ignore[no-untyped-def]
        wanted.extend(file.name for file in missing)
        keep(store, b"two", "two-1-py3-none-any.whl")
        return Brought(fetching.kept_files(missing, store))

    monkeypatch.setattr(fetching, "bring_files", bring)
    found = fetch(asked, replace(asked.recipe), made, Listener())
    assert [(file.name[:3], file.size, file.new) for file in found.files] == [
        ("one", 3, False),
        ("two", None if preview else 3, True),
    ]
    assert wanted == ([] if preview else ["two-1-py3-none-any.whl"])
    absent = ["two-1-py3-none-any.whl"] if preview else []
    assert list(found.left) == ["the Debian packages jq", *absent, f"mine ({COMMIT.url})"]
