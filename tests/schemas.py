"""The schemas of what ctk prints with `--json`; `python -m tests.schemas` writes the manual's table of them.

Whatever runs ctk for a test hands its output to `check_documents`: no test has to ask for that.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHECKOUT = Path(__file__).resolve().parents[1]
DIRECTORY = CHECKOUT / "docs/schemas"
MANUAL = CHECKOUT / "docs/manual.md"
COMMON = "common.json"
_HEAD = "| command | schema | document | keys besides `schema` and `findings` |\n| --- | --- | --- | --- |\n"
_TABLE = re.compile(r"^\| command \| schema \|.*\n(\|.*\n)+", re.MULTILINE)
_BEGIN = re.compile(r'^\{\s*"schema": "ctk\.', re.MULTILINE)


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Every file of docs/schemas by its name."""
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(DIRECTORY.iterdir())}


def schema_value(schema: Mapping[str, Any]) -> str:
    """What a document of this schema has under `schema`."""
    return str(schema["properties"]["schema"]["const"])


@cache
def _validators() -> dict[str, Draft202012Validator]:
    resources = ((name, Resource.from_contents(schema)) for name, schema in schemas().items())
    registry: Registry[Any] = Registry().with_resources(resources)
    return {
        schema_value(schema): Draft202012Validator(schema, registry=registry)
        for name, schema in schemas().items()
        if name != COMMON
    }


def check_document(document: Mapping[str, Any]) -> None:
    """Fail if a document of ctk does not match its schema."""
    known = _validators()
    assert document["schema"] in known, f"{document['schema']} has no file in docs/schemas"
    errors = [f"{error.json_path}: {error.message}" for error in known[document["schema"]].iter_errors(document)]
    assert not errors, f"{document['schema']}:\n" + "\n".join(errors)


def documents_in(output: str) -> Iterator[dict[str, Any]]:
    """The documents of ctk in what a program printed, wherever a line begins with one."""
    for begin in _BEGIN.finditer(output):
        yield json.JSONDecoder().raw_decode(output, begin.start())[0]


def check_documents(output: str) -> None:
    """Check every document of ctk in what a program printed."""
    for document in documents_in(output):
        check_document(document)


# ---- The table


def table() -> str:
    """The manual's table of schemas."""
    described = sorted(
        (schema["title"].replace("`", ""), name, schema) for name, schema in schemas().items() if name != COMMON
    )
    return _HEAD + "".join(f"{_row(name, schema)}\n" for _, name, schema in described)


def _row(name: str, schema: Mapping[str, Any]) -> str:
    keys = [key for key in schema["properties"] if key not in ("schema", "findings")]
    always, sometimes = (
        [f"`{key}`" for key in keys if (key in schema["required"]) is wanted] for wanted in (True, False)
    )
    words = ", ".join(always) + (f"; optional: {', '.join(sometimes)}" if sometimes else "")
    return f"| {schema['title']} | [`{schema_value(schema)}`](schemas/{name}) | {schema['description']} | {words} |"


def main() -> None:
    """Write the table into the manual."""
    text = MANUAL.read_text(encoding="utf-8")
    MANUAL.write_text(_TABLE.sub(lambda _: table(), text), encoding="utf-8")


if __name__ == "__main__":
    main()
