"""A new entry of a base: which image is meant, its name, and what its registry says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit.pins.bases.new_entry import from_registry, name_of, requested
from toolkit.recipes.model import Base, Bootstrap, DigestOf
from toolkit.support.errors import CheckFailed, WrongInput

if TYPE_CHECKING:
    from tests.pins.bases import oci

DIGEST = "sha256:" + "0123456789abcdef" * 3 + "fedcba9876543210"


@pytest.mark.parametrize("scheme", ["", "docker://"])
@pytest.mark.parametrize("digest", [None, DIGEST])
def test_image_of_a_registry_may_have_a_scheme_and_a_digest(scheme: str, digest: str | None) -> None:
    found = requested(f"{scheme}host:5000/lab/base:1{f'@{digest}' if digest else ''}")
    assert (found.bootstrap, found.reference, found.digest) == (Bootstrap.DOCKER, "host:5000/lab/base:1", digest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("./team.sif", "not an image of a registry"),
        ("team.sif", "not an image of a registry"),
        ("~/team", "not an image of a registry"),
        ("oci:layout", "not an image of a registry"),
        ("docker-archive:team.tar", "not an image of a registry"),
        ("oras://host/image:1", "not this scheme"),
        (f"image@{DIGEST}", "has a digest and no tag"),
        (f"host:5000/image@{DIGEST}", "has a digest and no tag"),
    ],
)
def test_other_references_are_refused(text: str, message: str) -> None:
    with pytest.raises(WrongInput, match=message):
        requested(text)


def test_digest_without_a_tag_is_refused_with_the_line_to_write() -> None:
    with pytest.raises(WrongInput) as caught:
        requested(f"host:5000/image@{DIGEST}")
    assert f"host:5000/image:TAG@{DIGEST}" in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("nvcr.io/nvidia/pytorch:25.03-py3", "pytorch-25.03-py3"),
        ("ubuntu", "ubuntu"),
        ("lab/base:latest", "base"),
        ("lab/base:V1_2", "base-v1_2"),
        ("lab/_base_:1-", "base_-1"),
    ],
)
def test_name_is_that_of_repository_and_tag(reference: str, name: str) -> None:
    assert name_of(Base("x", Bootstrap.DOCKER, reference)) == name


def test_entry_has_what_the_registry_says(registry: oci.Registry) -> None:
    index, *_ = registry.both("lab/base:1")
    found, findings = from_registry(requested(f"{registry.address}/lab/base:1"), "base-1")
    assert (found.name, found.digest, found.digest_of) == ("base-1", index, DigestOf.INDEX)
    assert found.architectures == ("x86_64", "aarch64")
    assert found.size
    assert found.source == f"the registry, asked on {found.checked}"
    assert findings == []


def test_architectures_that_an_entry_cannot_have_are_left_out(registry: oci.Registry) -> None:
    registry.image("lab/base:1", architecture="s390x")
    found, _ = from_registry(requested(f"{registry.address}/lab/base:1"), "base-1")
    assert found.architectures == ()


def test_requested_digest_is_recorded_and_compared_with_the_tag(registry: oci.Registry) -> None:
    index, _, arm = registry.both("lab/base:1")
    other = registry.image("lab/base:other")
    reference = f"{registry.address}/lab/base:1"
    for digest, codes in ((index, []), (arm, []), (other, ["tag-moved"])):
        found, findings = from_registry(requested(f"{reference}@{digest}"), "base-1")
        assert found.digest == digest
        assert [finding.code for finding in findings] == codes
        assert all(index in finding.message for finding in findings)


def test_image_that_is_not_there_is_an_error(registry: oci.Registry) -> None:
    with pytest.raises(CheckFailed) as caught:
        from_registry(requested(f"{registry.address}/lab/none:1"), "none-1")
    assert caught.value.code == "no-such-image"
