"""One spelling of a lock: in its file, in JSON and for the guard."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import tomlkit
from hypothesis import given

from tests import schemas
from tests.examples import examples
from tests.pins.locks import locks
from toolkit.cli.documents.recipes import locks as locks_on_stdout
from toolkit.pins.guard.script import lock_for_guard
from toolkit.pins.lock.lockfile import dump_locks

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock


@examples(50)
@given(lock=locks)
def test_a_lock_is_spelled_alike_in_its_file_its_json_and_the_guard(tmp_path_factory: Any, lock: Lock) -> None:
    file = tomlkit.parse(dump_locks(lock)).unwrap()
    shown = {"schema": "ctk.lock/1", **locks_on_stdout([lock], tmp_path_factory.getbasetemp()), "findings": []}
    guard = json.loads(lock_for_guard(lock))
    for document in (file, shown, guard):
        schemas.check_document(document)
    in_file, on_stdout = file[lock.architecture], shown[lock.architecture]
    for key in (guard.keys() & on_stdout.keys()) - {"schema"}:
        assert guard[key] == on_stdout[key]
    for key in in_file.keys() - {"content"}:
        assert in_file[key] == without_null(on_stdout[key])


def without_null(value: Any) -> Any:
    """What TOML can hold of a value of JSON."""
    if isinstance(value, dict):
        return {key: without_null(inner) for key, inner in value.items() if inner is not None}
    return [without_null(inner) for inner in value] if isinstance(value, list) else value
