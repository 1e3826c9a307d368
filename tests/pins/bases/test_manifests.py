"""Manifests, indexes and configs of a registry: what is read of them, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.bases.manifests import (
    IMAGE_TYPES,
    INDEX_TYPES,
    Platform,
    parse_config,
    parse_manifest,
    parse_object,
    sha256,
)
from toolkit.support.http_client import WrongContent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=8,
)
IMAGE = {"config": {"digest": "sha256:c"}, "layers": [{"size": 1000}, {"size": 24}]}


def content(**document: Any) -> bytes:
    return json.dumps(document).encode()


def entry(digest: str, architecture: str, os: str = "linux") -> dict[str, Any]:
    return {"digest": digest, "platform": {"architecture": architecture, "os": os}}


def test_sha256_is_written_as_registries_do() -> None:
    assert sha256(b"") == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize("kind", IMAGE_TYPES)
def test_image_has_the_size_of_its_layers_and_its_config(kind: str) -> None:
    text = content(mediaType=kind, **IMAGE)
    found = parse_manifest(text)
    assert (found.digest, found.media_type, found.size, found.config) == (sha256(text), kind, 1024, "sha256:c")
    assert not found.is_index


@pytest.mark.parametrize("kind", INDEX_TYPES)
def test_index_has_its_linux_images_and_no_build_records(kind: str) -> None:
    entries = [
        entry("sha256:1", "amd64"),
        entry("sha256:2", "arm64"),
        entry("sha256:3", "mips"),
        entry("sha256:4", "amd64", os="windows"),
        entry("sha256:5", "unknown", os="unknown"),
        {"digest": "sha256:6"},
    ]
    found = parse_manifest(content(mediaType=kind, manifests=entries))
    assert found.is_index
    assert found.size is None
    assert found.platforms == (
        Platform("sha256:1", "x86_64"),
        Platform("sha256:2", "aarch64"),
        Platform("sha256:3", "mips"),
    )


def test_media_type_of_the_server_counts_if_the_manifest_has_none() -> None:
    assert parse_manifest(content(**IMAGE), f"{IMAGE_TYPES[1]}; charset=utf-8").media_type == IMAGE_TYPES[1]
    assert parse_manifest(content(mediaType=IMAGE_TYPES[0], **IMAGE), INDEX_TYPES[0]).media_type == IMAGE_TYPES[0]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"mediaType": "text/html"}, "'text/html', which is not the manifest"),
        ({}, "'something', which is not the manifest"),
        ({"mediaType": IMAGE_TYPES[0]}, "incomplete manifest"),
        ({"mediaType": IMAGE_TYPES[0], **IMAGE, "layers": [{"size": -1}]}, "the size -1"),
        ({"mediaType": IMAGE_TYPES[0], **IMAGE, "layers": [{"size": True}]}, "the size True"),
        ({"mediaType": IMAGE_TYPES[0], **IMAGE, "layers": [{"size": "1"}]}, "the size '1'"),
        ({"mediaType": IMAGE_TYPES[0], **IMAGE, "layers": [{"size": 10**400}]}, "the size 10{39}\\D"),
        ({"mediaType": IMAGE_TYPES[0], **IMAGE, "layers": [{"size": 1 << 50}] * 2}, "the size 2251799813685248"),
        ({"mediaType": IMAGE_TYPES[0], **IMAGE, "config": None}, "incomplete manifest"),
        ({"mediaType": INDEX_TYPES[0], "manifests": ["sha256:1"]}, "incomplete manifest"),
        ({"mediaType": INDEX_TYPES[0], "manifests": [{"platform": {"os": "linux"}}]}, "incomplete manifest"),
    ],
)
def test_incomplete_manifest_is_refused(document: dict[str, Any], words: str) -> None:
    with pytest.raises(WrongContent, match=words):
        parse_manifest(content(**document))


@given(
    st.dictionaries(st.sampled_from(["manifests", "layers", "config"]), JSON),
    st.sampled_from(INDEX_TYPES + IMAGE_TYPES),
)
def test_any_document_is_a_manifest_or_refused(document: dict[str, Any], kind: str) -> None:
    try:
        found = parse_manifest(content(**document), kind)
    except WrongContent:
        return
    assert found.media_type == kind
    assert found.is_index is (kind in INDEX_TYPES)


@pytest.mark.parametrize(("name", "expected"), [("amd64", "x86_64"), ("arm64", "aarch64"), ("loong64", "loong64")])
def test_config_names_the_architecture_as_uname_does(name: str, expected: str) -> None:
    assert parse_config(content(architecture=name)) == expected


@pytest.mark.parametrize("document", [{}, {"architecture": ""}, {"architecture": 64}])
def test_config_without_an_architecture_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(WrongContent, match="without an architecture"):
        parse_config(content(**document))


@pytest.mark.parametrize("text", [b"<html>Welcome", b"[]", b"", b"\xff", b"[" * 100_000])
def test_other_content_than_an_object_is_refused(text: bytes) -> None:
    with pytest.raises(WrongContent, match="captive portal"):
        parse_object(text)
