"""`entry.json` may have been written by anybody: what is no record is none, without an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.store.entries import Kind, Record, is_file_name, is_key, read_record, write_record

KEY = "ab" * 32
RECORD = Record(Kind.BASE, KEY, "image.sif", f"sha256:{KEY}", 5, {"reference": "debian:12"})


@given(
    st.sampled_from(Kind),
    st.integers(0, 2**63 - 1),
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=20), st.text(st.characters(codec="utf-8"))),
)
@examples(100)
def test_a_record_is_read_as_it_was_written(kind: Kind, size: int, about: dict[str, str]) -> None:
    record = Record(kind, KEY, "six-1.17.0-py2.py3-none-any.whl", f"sha256:{KEY}", size, about)
    assert read_record(write_record(record).encode()) == (record if len(about) <= 32 else None)


@given(st.binary(max_size=200))
@examples(300)
def test_bytes_that_are_no_record(text: bytes) -> None:
    assert read_record(text) is None


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.sampled_from(["format", "kind", "key", "file", "digest", "size", "about"]), JSON)
@examples(300)
def test_a_wrong_value_makes_no_record_or_a_valid_one(name: str, value: Any) -> None:
    content = {**json.loads(write_record(RECORD)), name: value}
    record = read_record(json.dumps(content).encode())
    assert record is None or (is_key(record.key) and is_file_name(record.file) and record.size >= 0)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 60000,
        '{"a":' * 12000,
        '{"size": ' + "9" * 60000 + "}",
        write_record(RECORD).replace("debian:12", "\\ud800"),
        write_record(RECORD).replace(": 5", ": true"),
        write_record(RECORD).replace(": 5", ": 5.0"),
        write_record(RECORD).replace(": 5", ": -1"),
        write_record(RECORD).replace("image.sif", "../../etc/passwd"),
        write_record(RECORD).replace("image.sif", "entry.json"),
        write_record(RECORD).replace("image.sif", "a\\u001b[31m"),
        write_record(RECORD).replace("debian:12", "a" * 5000),
    ],
    ids=range(11),
)
def test_hostile_records(text: str) -> None:
    assert read_record(text.encode()) is None


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "-option", "a/b", "entry.json", "a\nb", "ä" * 128])
def test_names_that_no_content_has(name: str) -> None:
    assert not is_file_name(name)


@pytest.mark.parametrize("key", ["", "ab", "AB" * 32, "ab" * 32 + "\n", "../" * 22])
def test_keys_that_no_entry_has(key: str) -> None:
    assert not is_key(key)
