"""References to images: credentials refused, and OCI layouts of one image only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.recipes.references import SCHEMES, base_from_reference, has_scheme, refuse_credentials
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
