"""One spelling of a lock: in its file, in JSON and for the guard."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import tomlkit
from hypothesis import given

from tests import schemas
from tests.examples import examples
from tests.pins.locks import locks
from toolkit.cli.documents.recipes import lock as lock_on_stdout
from toolkit.pins.guard.script import lock_for_guard
from toolkit.pins.lock.lockfile import dump_lock

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock


@examples(50)
@given(lock=locks)
def test_a_lock_is_spelled_alike_in_its_file_its_json_and_the_guard(tmp_path_factory: Any, lock: Lock) -> None:
    file = tomlkit.parse(dump_lock(lock)).unwrap()
    shown = {"schema": "ctk.lock/1", **lock_on_stdout(lock, tmp_path_factory.getbasetemp()), "findings": []}
    guard = json.loads(lock_for_guard(lock))
    for document in (file, shown, guard):
        schemas.check_document(document)
    for key in (guard.keys() & shown.keys()) - {"schema"}:
        assert guard[key] == shown[key]
    for key in file.keys() - {"schema", "content"}:
        assert file[key] == without_null(shown[key])


def without_null(value: Any) -> Any:
    """What TOML can hold of a value of JSON."""
    if isinstance(value, dict):
        return {key: without_null(inner) for key, inner in value.items() if inner is not None}
    return [without_null(inner) for inner in value] if isinstance(value, list) else value
