"""Asking a registry, against a small one on loopback that behaves as Docker Hub does, or wrongly."""

from __future__ import annotations

import json
import socket
import subprocess
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

from tests.pins.bases import oci
from tests.real.inspection import inspection
from toolkit.pins.bases import registry as client
from toolkit.pins.bases.check import describe
from toolkit.pins.bases.registry import Reference, Repository, fetch_digest, parse_reference
from toolkit.support.errors import CheckFailed, ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path


def log_in(home: Path, host: str, **entry: str) -> Path:
    path = home / ".docker/config.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"auths": {host: entry}}))
    return path


def certificate(directory: Path) -> tuple[Path, Path]:
    """A new certificate `ca.pem` of 127.0.0.1 and its key."""
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-days", "2", "-subj", "/CN=private", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*new, *subject, "-keyout", "key", "-out", "ca.pem"], cwd=directory, check=True, capture_output=True)
    return directory / "ca.pem", directory / "key"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ubuntu", ("docker.io", "library/ubuntu", "latest")),
        ("ubuntu:22.04", ("docker.io", "library/ubuntu", "22.04")),
        ("tensorflow/tensorflow:2.15.0-gpu", ("docker.io", "tensorflow/tensorflow", "2.15.0-gpu")),
        ("docker.io/a/b", ("docker.io", "a/b", "latest")),
        ("nvcr.io/nvidia/jax:24.10-py3", ("nvcr.io", "nvidia/jax", "24.10-py3")),
        ("localhost/a:1", ("localhost", "a", "1")),
        ("127.0.0.1:5000/lab/base:1.0@sha256:00", ("127.0.0.1:5000", "lab/base", "1.0")),
    ],
)
def test_a_reference_has_a_host_a_repository_and_a_tag(text: str, parts: tuple[str, str, str]) -> None:
    assert parse_reference(text) == Reference(*parts)


@pytest.mark.parametrize("fault", [None, "no-head", "no-digest"])
def test_a_tag_names_a_digest_also_where_a_registry_does_not_tell_it(registry: oci.Registry, fault: str | None) -> None:
    digest = registry.image("open/image:1")
    registry.faults = {"open/image": fault} if fault else {}
    repository = Repository(parse_reference(f"{registry.address}/open/image:1"))
    named = repository.named("1")
    assert (named.digest, named.media_type) == (digest, oci.IMAGE)
    assert fetch_digest(f"{registry.address}/open/image:1") == digest
    asked_twice = registry.asked[:2] if fault else registry.asked[:1]
    assert [method for method, _, _ in asked_twice] == ["HEAD", "GET"][: len(asked_twice)]


def test_an_index_and_an_image_are_described(registry: oci.Registry) -> None:
    index, amd, arm = registry.both("open/both:1")
    repository = Repository(parse_reference(f"{registry.address}/open/both:1"))
    found = describe(repository, "1")
    assert (found.digest, found.digest_of, found.architectures) == (index, "index", ("x86_64", "aarch64"))
    one, other = describe(repository, amd), describe(repository, arm)
    assert (one.digest_of, one.architectures, one.size) == ("image", ("x86_64",), found.size)
    assert other.architectures == ("aarch64",)
    only_arm = registry.index("open/both:arm", {"arm64": arm}, kind=oci.DOCKER_INDEX)
    assert describe(repository, only_arm).size == other.size


def test_missing_or_private_image_is_reported(registry: oci.Registry, tmp_path: Path) -> None:
    image = f"{registry.address}/private/image:1"
    with pytest.raises(CheckFailed, match="no image") as caught:
        fetch_digest(image)
    assert caught.value.code == "no-such-image"
    for kind in ("basic", "bearer"):
        registry.login = kind
        with pytest.raises(CheckFailed, match="requires a login") as caught:
            fetch_digest(image)
        path = log_in(tmp_path, registry.address, auth=b64encode(b"ann:wrong-secret").decode())
        with pytest.raises(CheckFailed, match="rejects the login of") as rejected:
            fetch_digest(image)
        assert str(path) in rejected.value.message
        assert "wrong-secret" not in rejected.value.message + (rejected.value.fix or "")
        assert {caught.value.code, rejected.value.code} == {"registry-login"}
        path.unlink()


@pytest.mark.parametrize("kind", ["basic", "bearer"])
@pytest.mark.parametrize("scheme", ["", "https://", "http://"])
def test_a_login_opens_a_private_image(registry: oci.Registry, tmp_path: Path, kind: str, scheme: str) -> None:
    registry.login, digest = kind, registry.image("private/image:1")
    path = log_in(tmp_path, f"{scheme}{registry.address}", username=oci.USER, password=oci.PASSWORD)
    repository = Repository(parse_reference(f"{registry.address}/private/image:1"))
    assert describe(repository, "1").digest == digest
    assert repository.login is not None
    assert repository.login.origin == str(path)
    assert len([path for _, path, _ in registry.asked if path.startswith("/token")]) == (kind == "bearer"), "one token"
    assert oci.PASSWORD not in repr(repository)


def test_an_identity_token_is_exchanged_for_one_of_the_repository(registry: oci.Registry, tmp_path: Path) -> None:
    registry.login, digest = "bearer", registry.image("private/image:1")
    log_in(tmp_path, registry.address, identitytoken=oci.PASSWORD)
    assert fetch_digest(f"{registry.address}/private/image:1") == digest
    assert ("POST", "/token", "") in registry.asked


def test_a_login_does_not_go_to_the_target_of_a_redirect(registry: oci.Registry, tmp_path: Path) -> None:
    registry.login, registry.faults = "basic", {"private/image": "other-host"}
    registry.image("private/image:1")
    log_in(tmp_path, registry.address, username=oci.USER, password=oci.PASSWORD)
    with oci.serving(oci.Registry(blobs=registry.blobs)) as content:
        registry.elsewhere = content.address
        repository = Repository(parse_reference(f"{registry.address}/private/image:1"))
        assert describe(repository, "1").architectures == ("x86_64",)
    assert [given for _, _, given in content.asked] == [""]


def test_a_login_is_not_sent_to_a_token_service_without_tls(registry: oci.Registry) -> None:
    challenge = f'Bearer realm="http://{registry.address}/token",service="tests"'
    with pytest.raises(client.WrongContent, match="without TLS"):
        client.authorization(challenge, "https://registry.example/v2/", None)
    assert registry.asked == []


def test_a_redirect_does_not_choose_who_gets_a_login(registry: oci.Registry, tmp_path: Path) -> None:
    registry.faults = {"private/image": "other-site"}
    log_in(tmp_path, registry.address, username=oci.USER, password=oci.PASSWORD)
    with oci.serving(oci.Registry("bearer")) as other:
        registry.elsewhere = f"http://{other.address}"
        with pytest.raises(ProgramFailed, match=f"redirects to http://{other.address}, which requires") as caught:
            fetch_digest(f"{registry.address}/private/image:1")
    assert caught.value.code == "registry-content"
    assert {given for _, _, given in (*registry.asked, *other.asked)} == {""}


def test_no_redirect_leads_away_from_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry, other = oci.Registry(faults={"a/b": "other-site"}), oci.Registry()
    other.image("a/b:1")
    monkeypatch.setattr(client, "api_address", lambda host: f"https://{host}")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with oci.serving(registry, certificate(tmp_path)), oci.serving(other):
        for scheme in ("http", "ftp"):
            registry.elsewhere = f"{scheme}://{other.address}"
            with pytest.raises(ProgramFailed, match=f"redirects to {scheme}://{other.address}, without TLS"):
                fetch_digest(f"{registry.address}/a/b:1")
    assert other.asked == []


@pytest.mark.parametrize(
    ("fault", "code", "message"),
    [
        ("broken", "registry-unreachable", "returned status 500"),
        ("limit", "registry-unreachable", "limits the number of requests"),
        ("liar", "registry-content", "returned content with the digest"),
        ("portal", "registry-content", "that is not JSON .'<html>Welcome"),
    ],
)
def test_faulty_registry_is_an_error(registry: oci.Registry, fault: str, code: str, message: str) -> None:
    registry.image("open/image:1")
    registry.faults = {"open/image": fault}
    with pytest.raises(ProgramFailed, match=message) as caught:
        fetch_digest(f"{registry.address}/open/image:1")
    assert caught.value.code == code


def test_unreachable_registry_is_an_error() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound, and not listening
        with pytest.raises(ProgramFailed, match=r"does not respond: .*refused") as caught:
            fetch_digest(f"127.0.0.1:{probe.getsockname()[1]}/image:1")
    assert caught.value.code == "registry-unreachable"


def test_proxy_that_does_not_answer_is_named_without_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{probe.getsockname()[1]}"
        monkeypatch.setenv("http_proxy", f"http://ann:secret@{proxy}")
        with pytest.raises(ProgramFailed) as caught:
            fetch_digest("127.0.0.1:9/image:1")
    assert f"does not respond through the proxy http://{proxy}: " in caught.value.message
    assert "secret" not in caught.value.message


def test_slow_registry_is_not_awaited(registry: oci.Registry) -> None:
    registry.image("open/image:1")
    registry.faults = {"open/image": "slow"}
    repository = Repository(parse_reference(f"{registry.address}/open/image:1"), timeout=0.2)
    with pytest.raises(ProgramFailed, match="did not respond in time"), client.asking("image:1", repository):
        repository.named("1")


def test_a_registry_behind_a_private_ca_needs_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with oci.serving(oci.Registry(), certificate(tmp_path)) as registry:
        digest = registry.image("open/image:1")
        monkeypatch.setattr(client, "api_address", lambda host: f"https://{host}")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
        with pytest.raises(ProgramFailed, match=r"not trusted \(trusted authorities: /etc/ssl") as caught:
            fetch_digest(f"{registry.address}/open/image:1")
        assert caught.value.code == "certificate"
        assert "REQUESTS_CA_BUNDLE names /nowhere.pem, which cannot be read" in caught.value.message
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert fetch_digest(f"{registry.address}/open/image:1") == digest


@pytest.mark.index
def test_untrusted_certificate_is_reported_until_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "PIP_CERT", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with inspection(tmp_path) as network:
        monkeypatch.setenv("https_proxy", network.proxy)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
        with pytest.raises(ProgramFailed, match=r"nvcr\.io cannot be used: the certificate .* not trusted") as caught:
            fetch_digest("nvcr.io/nvidia/jax:1")
        assert caught.value.code == "certificate"
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(network.authority))
        with pytest.raises(CheckFailed, match="no image"):
            fetch_digest("nvcr.io/nvidia/jax:1")
