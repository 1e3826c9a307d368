"""References to images: credentials refused, and OCI layouts of one image only."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.pins.bases.registry import parse_reference as split_reference
from toolkit.recipes.bases import load_bases
from toolkit.recipes.references import (
    SCHEMES,
    base_from_reference,
    has_scheme,
    parse_reference,
    refuse_credentials,
    require_image,
)
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

NAME = st.text("abcdefgh0123456789", min_size=1, max_size=8)
DIGEST = f"sha256:{'0' * 64}"


@given(NAME, NAME, NAME)
def test_a_password_is_refused_and_not_repeated(user: str, password: str, host: str) -> None:
    secret = f"S3{password}T"
    for reference in (f"{user}:{secret}@{host}/x:1", f"{user}:{secret}@{host}/x:1@{DIGEST}"):
        with pytest.raises(WrongInput) as caught:
            base_from_reference(f"docker://{reference}")
        assert secret not in f"{caught.value.message} {caught.value.fix}"
    refuse_credentials(f"{host}:5000/x:1@{DIGEST}")


@given(st.sampled_from(sorted(SCHEMES)), st.text(max_size=10))
def test_any_reference_is_a_base_or_refused(scheme: str, rest: str) -> None:
    assert has_scheme(scheme + rest)
    try:
        base = base_from_reference(scheme + rest)
    except WrongInput:
        return
    assert base.name == scheme + rest
    assert base.bootstrap is SCHEMES[scheme]


@pytest.mark.parametrize(
    "reference",
    [
        *(
            "ubuntu",
            "ubuntu:22.04",
            "a/b__c/d-e.f:V_1.0-x",
            "localhost/a:1",
            "localhost:5000/a",
            "NVCR.io/nvidia/jax:1",
        ),
        *("127.0.0.1:5000/lab/base:1.0", "[::1]:5000/a", f"a.b/c:1@{DIGEST}", f"a@{DIGEST}"),
    ],
)
def test_the_name_of_an_image_is_taken(reference: str) -> None:
    require_image(reference)


@pytest.mark.parametrize(
    "reference",
    [
        *("", "a b", "a\n", "../a", "a/../b", "a..b/", "a/", "/a", "a//b", "a?x", "a#x", "`id`", "$HOME", "a:$(id)"),
        *("u:p@dead:beef", "Ubuntu", "a/B:1", "a.b/C", "a_-b", "a:.x", f"a:{'x' * 129}", "a:1:2", "a@sha256:00", "é"),
        *("a.b:x/c", "a.b:123456/c", "https://a.b/c", "-a"),
    ],
)
def test_what_cannot_name_an_image_is_refused_everywhere(tmp_path: Path, reference: str) -> None:
    with pytest.raises(WrongInput):
        parse_reference(f"docker://{reference}")
    path = tmp_path / "bases.toml"
    path.write_text(f'[a]\nbootstrap = "docker"\nreference = {json.dumps(reference)}\n')
    with pytest.raises(WrongInput, match=r"reference|bases\.toml"):
        load_bases(path)


@given(st.text("a1./-_:@A", max_size=30))
def test_a_name_that_is_taken_has_a_repository_that_a_registry_knows(reference: str) -> None:
    try:
        require_image(reference)
    except WrongInput:
        return
    parts = split_reference(reference)
    assert re.fullmatch(r"[a-z0-9]+([._/-]+[a-z0-9]+)*", parts.repository)
    assert re.fullmatch(r"\w[\w.-]*", parts.tag)


@pytest.mark.parametrize(
    ("names", "tag", "message"),
    [
        (["one"], "two", "contains no image named two; it contains: one"),
        (["one", "two"], "one", "contains 2 images (one, two)"),
        ([], "", "contains 0 images"),
        (None, "", "is not an OCI layout"),
    ],
)
def test_a_layout_without_exactly_one_image_is_refused(
    tmp_path: Path, names: list[str] | None, tag: str, message: str
) -> None:
    manifests = names and [{"annotations": {"org.opencontainers.image.ref.name": name}} for name in names]
    (tmp_path / "index.json").write_text(json.dumps({"manifests": manifests}))
    with pytest.raises(WrongInput) as caught:
        base_from_reference(f"oci:{tmp_path}{tag and ':'}{tag}")
    assert message in caught.value.message
