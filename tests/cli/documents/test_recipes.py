"""The documents of trials and edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.documents.test_images import LOG, RECIPE, checked
from tests.pins.locks import ARM, SMALL
from toolkit.builds.trying import Tried
from toolkit.cli.documents import recipes
from toolkit.pins.guard.trials import Imported
from toolkit.pins.lock.changes import LockChange
from toolkit.pins.store import Found


def test_a_trial_names_what_was_imported_and_what_was_not() -> None:
    tried = Tried((Imported("timm", "1.0.3", 1.5, ("import timm",)),), 20.04, 1.6, LOG)
    found = checked("try", recipes.trial(RECIPE, tried))
    assert found["imported"] == [{"name": "timm", "version": "1.0.3", "seconds": 1.5, "steps": ["import timm"]}]
    assert (found["skipped"], found["seconds"]) == (["horovod"], 20.0)


CHANGE = LockChange(
    made=False,
    changed=(("timm", "1", "2"),),
    notes=("a note",),
    unlike_list=(("six", "1", "-", "nothing requires it"),),
    released=(("numpy", "2.4"),),
)


@pytest.mark.parametrize("change", [None, CHANGE])
def test_an_edit_has_both_lists(change: LockChange | None) -> None:
    locked = [Found(SMALL, Path("small.lock.toml"), change), Found(ARM, Path("small.lock.toml"))]
    found = checked("recipe-edit", recipes.recipe_edit("mine", "apt", locked, added=("git",)))
    assert (found["added"], found["removed"]) == (["git"], [])
    lock = change and {
        "added": [],
        "removed": [],
        "changed": [{"name": "timm", "from": "1", "to": "2"}],
        "notes": ["a note"],
        "unlike_list": [{"name": "six", "listed": "1", "version": None, "why": "nothing requires it"}],
        "released": [{"name": "numpy", "newest": "2.4"}],
    }
    assert found["lock_changes"] == ({"x86_64": lock} if lock else {})
