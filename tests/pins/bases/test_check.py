"""`ctk bases check`, decided against a registry on loopback that serves stand-ins of the catalogue's images."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.pins.bases import oci
from tests.pins.bases.oci import base_of
from tests.real.inspection import inspection
from toolkit.pins.bases.check import State, check_all, check_base, exit_status
from toolkit.pins.bases.registry import parse_reference
from toolkit.recipes.catalogue import Catalogue
from toolkit.recipes.model import Base, Bootstrap, DigestOf
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "sha256:" + "0123456789abcdef" * 2 + "fedcba9876543210" * 2


def test_the_same_digest_is_asked_once_and_nothing_is_pulled(registry: oci.Registry) -> None:
    digest, *_ = registry.both("a/b:1")
    known = base_of(registry, "a/b:1", digest=digest, size=5, architectures=("x86_64",))
    found = check_base(known)
    assert (found.state, found.problem, found.finding()) == (State.SAME, None, None)
    assert found.image is not None
    assert (found.image.digest_of, found.image.size) == (DigestOf.INDEX, 5)
    assert [method for method, _, _ in registry.asked] == ["HEAD"]
    unknown = check_base(replace(known, size=None))
    assert unknown.image is not None
    assert unknown.image.size not in (None, 5)
    assert unknown.image.architectures == ("x86_64", "aarch64")


@pytest.mark.parametrize("which", [1, 2])
def test_a_platform_digest_within_the_index_of_the_tag_is_the_same(registry: oci.Registry, which: int) -> None:
    digests = registry.both("a/b:1")
    found = check_base(base_of(registry, "a/b:1", digest=digests[which]))
    assert found.state is State.SAME
    assert found.image is not None
    assert found.tag is not None
    assert (found.tag.digest, found.tag.media_type) == (digests[0], oci.INDEX)
    assert (found.image.digest, found.image.digest_of) == (digests[which], DigestOf.IMAGE)
    assert found.image.architectures == (("x86_64",), ("aarch64",))[which - 1]
    assert found.image.size


@pytest.mark.parametrize("kept", [True, False])
def test_a_moved_tag_has_its_new_digest(registry: oci.Registry, kept: bool) -> None:
    old, new = registry.image("a/b:1"), registry.image("a/b:1", files={"new": b"2"})
    if not kept:
        del registry.manifests["a/b", old]
    found = check_base(base_of(registry, "a/b:1", digest=old, size=5, architectures=("x86_64",)))
    finding = found.finding()
    assert finding is not None
    assert (found.state, found.pullable, finding.code) == (State.MOVED, kept, "tag-moved")
    assert new in finding.message
    assert ("can still be pulled" in finding.message) is kept
    assert ("can no longer be pulled" in finding.message) is not kept
    assert found.image is not None
    assert found.image.size != 5, "what is recorded is about the earlier image"


def test_gone_and_unpinned_images(registry: oci.Registry) -> None:
    digest = registry.image("a/b:1")
    gone = check_base(base_of(registry, "a/b:2", digest=digest))
    assert (gone.state, gone.pullable) == (State.GONE, True)
    assert check_base(base_of(registry, "a/none:1", digest=digest)).pullable is False
    assert check_base(base_of(registry, "a/none:1")).pullable is None
    finding = gone.finding()
    assert finding is not None
    assert (finding.code, finding.severity) == ("no-such-image", Severity.ERROR)
    assert "the recorded digest can still be pulled" in finding.message
    unpinned = check_base(base_of(registry, "a/b:1"))
    assert (unpinned.state, unpinned.finding()) == (State.UNPINNED, None)
    assert unpinned.image is not None
    assert unpinned.image.digest == digest


@pytest.mark.parametrize(
    ("fault", "code"),
    [("portal", "registry-content"), ("broken", "registry-unreachable"), ("limit", "registry-unreachable")],
)
def test_a_registry_that_fails_is_no_answer(registry: oci.Registry, fault: str, code: str) -> None:
    digest = registry.image("a/b:1")
    registry.faults = {"a/b": fault}
    found = check_base(base_of(registry, "a/b:1", digest=digest))
    finding = found.finding()
    assert finding is not None
    assert (found.state, finding.code) == (State.UNREACHABLE, code)


@pytest.mark.parametrize("kind", ["basic", "bearer"])
def test_a_missing_login_is_no_answer(registry: oci.Registry, kind: str) -> None:
    registry.login, digest = kind, registry.image("a/b:1")
    found = check_base(base_of(registry, "a/b:1", digest=digest))
    finding = found.finding()
    assert finding is not None
    assert (found.state, finding.code) == (State.LOGIN_NEEDED, "registry-login")


def test_many_bases_at_once_are_not_held_up_by_a_slow_one(registry: oci.Registry) -> None:
    """Stand-ins of the shipped bases, both architectures and an index each, and one that never answers."""
    shipped = [base for base in Catalogue.here().bases().values() if base.bootstrap == Bootstrap.DOCKER]
    names = [f"{parse_reference(base.reference).repository}:{parse_reference(base.reference).tag}" for base in shipped]
    names += [f"pytorch/pytorch:{number}" for number in range(10)]
    bases = [base_of(registry, name, digest=registry.both(name)[number % 3]) for number, name in enumerate(names)]
    assert len(bases) >= 10
    slow = base_of(registry, "slow/slow:1", digest=registry.image("slow/slow:1"))
    registry.faults = {"slow/slow": "slow"}
    steps: list[str] = []
    begun = time.monotonic()
    results = check_all([slow, *bases], timeout=6, on_step=steps.append)
    assert time.monotonic() - begun < 12
    assert [found.base for found in results] == [slow, *bases]
    assert [found.state for found in results] == [State.UNREACHABLE, *[State.SAME] * len(bases)]
    assert "respon" in str(results[0].problem) or "no answer" in str(results[0].problem)
    assert steps[-1].startswith(f"{len(bases)} of {len(bases) + 1}") or steps[-1].startswith(f"{len(bases) + 1} of")
    assert exit_status(results) == 4
    assert exit_status(results[1:]) == 0


@pytest.mark.index
def test_an_untrusted_certificate_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    known = Base("jax", Bootstrap.DOCKER, "nvcr.io/nvidia/jax:1", digest=OTHER)
    with inspection(tmp_path) as network:
        monkeypatch.setenv("https_proxy", network.proxy)
        finding = check_base(known).finding()
        assert finding is not None
        assert finding.code == "certificate"
        assert "trusted authorities: " in finding.message
        monkeypatch.setenv("SSL_CERT_FILE", str(network.authority))
        assert check_base(known).state is State.GONE
