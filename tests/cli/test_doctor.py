"""`ctk doctor` as a user meets it."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pins.bases import oci

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk

pytestmark = pytest.mark.slow


def test_doctor_writes_a_report_once(ctk: Ctk) -> None:
    assert "Written: ticket.txt" in ctk("doctor", "--report", "ticket.txt", status=None).stdout
    text = (ctk.directory / "ticket.txt").read_text()
    assert text.startswith("ctk ")
    assert str(ctk.directory.parent / "home") not in text
    assert "ticket.txt exists" in ctk("doctor", "--report", "ticket.txt", status=2).stderr
    ctk("doctor", "--report", "ticket.txt", "--force", status=None)


def log_in(ctk: Ctk, registry: oci.Registry, secret: str, name: str = ".docker/config.json") -> str:
    path = Path(ctk.environment["HOME"]) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"auths": {registry.address: {"auth": b64encode(secret.encode()).decode()}}}))
    return str(path)


@pytest.mark.parametrize("kind", ["basic", "bearer"])
@pytest.mark.parametrize("name", [".apptainer/docker-config.json", ".config/containers/auth.json"])
def test_doctor_tells_which_login_a_registry_accepts(ctk: Ctk, registry: oci.Registry, kind: str, name: str) -> None:
    registry.login = kind
    path = log_in(ctk, registry, f"{oci.USER}:{oci.PASSWORD}", name)
    done = ctk("--trace", "doctor", "--registry", registry.address)
    assert f"{registry.address} answers, without TLS." in done.stdout
    assert f"accepts that of {path}." in done.stdout
    log_in(ctk, registry, "ann:wrong-secret", name)
    wrong = ctk("doctor", "--registry", f"docker://{registry.address}/lab/image:1", "--json", status=1)
    document = json.loads(wrong.stdout)
    assert (document["login"], document["accepted"]) == (path, False)
    assert document["findings"][-1]["code"] == "registry-login"
    for text in (done.stdout, done.stderr, wrong.stdout):
        assert not any(secret in text for secret in ("wrong-secret", oci.PASSWORD, oci.TOKEN))


def test_doctor_tells_of_a_registry_without_a_login(ctk: Ctk, registry: oci.Registry) -> None:
    assert "does not ask for one" in ctk("doctor", "--registry", registry.address).stdout
    registry.login = "basic"
    needed = ctk("doctor", "--registry", registry.address, status=1).stdout
    assert ".config/containers/auth.json), and it requires one" in needed
    registry.login = "bearer"
    assert "requires one" in ctk("doctor", "--registry", registry.address, status=1).stdout
    assert "[registry-unreachable]" in ctk("doctor", "--registry", "127.0.0.1:9", status=1).stdout
    assert "is not the name of a registry" in ctk("doctor", "--registry", "https://x", status=2).stderr
    assert "--offline" in ctk("doctor", "--registry", "x", "--offline", status=2).stderr
