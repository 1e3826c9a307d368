"""Each document of ctk has a schema, each schema a document, and all of them follow one style."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from tests import schemas
from toolkit.builds.record import Record, RecordedBase

if TYPE_CHECKING:
    from collections.abc import Iterator


PACKAGE = schemas.CHECKOUT / "toolkit"
SOURCES = {str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
# They write what nobody but ctk reads: what layers and imports are made with, uv's answers, and the state of a lab.
PRIVATE = {"builds/layers/imported.py", "builds/layers/inside.py", "lab/registry.py", "pins/index/uv.py"}
WRONG = {"schema": "ctk.new/1", "path": "defs/mine.toml", "base": None, "octets": 3}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object that a schema describes key by key."""
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)


OBJECTS = [(name, found) for name, schema in schemas.schemas().items() for found in objects(schema)]
KEYS = [(name, key, value) for name, found in OBJECTS for key, value in found["properties"].items()]


# ---- The files


@pytest.mark.parametrize("name", schemas.schemas())
def test_a_schema_is_valid_and_what_it_refers_to_exists(name: str) -> None:
    schema = schemas.schemas()[name]
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(schema)
    for file, pointer in references(schema):
        found: Any = schemas.schemas()[file or name]
        for part in filter(None, pointer.split("/")):
            found = found[part]


def references(schema: Any) -> set[tuple[str, str]]:
    found = re.findall(r'"\$ref": "([^"#]*)(?:#/([^"]*))?"', json.dumps(schema))
    return set(found)


def test_every_schema_value_has_a_file_and_every_file_a_user() -> None:
    used = {value for text in SOURCES.values() for value in re.findall(r'"(ctk\.[a-z-]+/\d+)"', text)}
    described = {name: schema for name, schema in schemas.schemas().items() if name != schemas.COMMON}
    assert {schemas.schema_value(schema) for schema in described.values()} == used
    # None was released yet, but images with the record of the first form are in use.
    second = {"image.json"}
    assert {f"ctk.{name.removesuffix('.json')}/{2 if name in second else 1}" for name in described} == used
    common = schemas.schemas()[schemas.COMMON]
    referred = {pointer for schema in schemas.schemas().values() for _, pointer in references(schema)}
    assert {f"$defs/{name}" for name in common["$defs"]} <= referred


def test_every_key_is_described_and_snake_case() -> None:
    assert not [(name, key) for name, key, _ in KEYS if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", key)]
    shared = schemas.schemas()[schemas.COMMON]["$defs"]
    for name, key, value in KEYS:
        told = value.get("description") or shared[value["$ref"].rpartition("/")[2]].get("description")
        assert told, f"{name}: {key}"


def test_nothing_is_in_an_object_that_its_schema_does_not_name() -> None:
    for name, found in OBJECTS:
        assert found["additionalProperties"] is False, f"{name}: {list(found['properties'])}"
        assert set(found["required"]) <= set(found["properties"]), name


def test_sizes_are_bytes_and_times_are_seconds() -> None:
    for name, key, value in KEYS:
        kinds = {value["type"]} if isinstance(value.get("type"), str) else set(value.get("type", ()))
        if re.search(r"(^|_)(size|octets|bytes|memory)", key):
            assert key.endswith("_bytes"), f"{name}: {key}"
            assert kinds - {"null"} == {"integer"}, f"{name}: {key}"
        if re.search(r"(^|_)(seconds|elapsed|duration|minutes|time|limit)(_|$)", key):
            assert key.endswith("seconds"), f"{name}: {key}"
            assert kinds - {"null"} in ({"integer"}, {"number"}), f"{name}: {key}"


def test_the_manual_s_table_is_made_from_the_schemas() -> None:
    assert schemas.table() in schemas.MANUAL.read_text(encoding="utf-8"), "run: python -m tests.schemas"


def test_no_class_is_public_because_of_its_attributes() -> None:
    assert {path for path, text in SOURCES.items() if "asdict" in text} == PRIVATE


# ---- The check


def test_a_document_that_its_schema_does_not_describe_is_refused() -> None:
    with pytest.raises(AssertionError) as caught:
        schemas.check_document(WRONG)
    for problem in ("'packages' is a required", "'findings' is a required", "'octets' was unexpected", "$.base: None"):
        assert problem in str(caught.value)
    with pytest.raises(AssertionError, match="no file"):
        schemas.check_document({"schema": "ctk.other/1"})


@pytest.mark.parametrize("indent", [None, 1, 2])
@pytest.mark.parametrize("text", [True, False])
def test_the_output_of_every_program_is_checked(indent: int | None, text: bool) -> None:
    shown = f"words\n{json.dumps(WRONG, indent=indent)}\nmore words"
    with pytest.raises(AssertionError, match="'octets' was unexpected"):
        subprocess.run([sys.executable, "-c", f"print({shown!r})"], capture_output=True, text=text, check=True)


def test_the_record_of_an_image_follows_its_schema() -> None:
    for record in (
        Record("recipe:mine"),
        Record("recipe:mine", RecordedBase("b"), "gpu-ready", ("a-code",), inputs={"base": "x"}),
    ):
        schemas.check_document(json.loads(record.as_text()))
    schemas.check_document(json.loads(Record("sandbox:/x", changed=True).as_text(inode=3)))
