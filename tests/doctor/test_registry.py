"""`ctk doctor --registry`: what names a registry, what it answers, and what that means."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest

from tests.pins.bases import oci
from toolkit.doctor.registry import RegistryFacts, ask_registry, judge_registry, parse_registry
from toolkit.support.errors import ProgramFailed, WrongInput
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

LOGIN = "/home/ann/.docker/config.json"
LOOKED_IN = ("/home/ann/.docker/config.json", "/run/auth.json")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("nvcr.io", ("nvcr.io", "")),
        ("docker://nvcr.io/", ("nvcr.io", "")),
        ("nvcr.io/nvidia/pytorch:25.03-py3", ("nvcr.io", "nvidia/pytorch")),
        (f"localhost:5000/lab/base@sha256:{'0' * 64}", ("localhost:5000", "lab/base")),
        ("[::1]:5000/lab", ("[::1]:5000", "lab")),
    ],
)
def test_registry_has_a_host_and_maybe_a_repository(text: str, parts: tuple[str, str]) -> None:
    assert parse_registry(text) == parts


@pytest.mark.parametrize(
    "text", ["", "https://nvcr.io", "ann:secret@nvcr.io", "two words", "a..b", "host:port", "/lab"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(WrongInput, match="is not the name of a registry"):
        parse_registry(text)


@pytest.mark.parametrize(
    ("login", "status", "accepted"),
    [(None, 200, None), (LOGIN, None, None), (LOGIN, 200, True), (LOGIN, 404, None), (LOGIN, 401, False)],
)
def test_login_is_accepted_only_if_one_was_sent(login: str | None, status: int | None, accepted: bool | None) -> None:
    assert RegistryFacts("r", status, login=login).accepted is accepted


@pytest.mark.parametrize(
    ("facts", "codes", "words"),
    [
        (RegistryFacts("r", 200, trust="the system"), ["registry", "no-registry-login"], "with TLS (the system)"),
        (RegistryFacts("r", 200), ["registry", "no-registry-login"], "without TLS"),
        (RegistryFacts("r", 200, asks="Bearer", looked_in=LOOKED_IN), ["registry", "no-registry-login"], "public"),
        (RegistryFacts("r", 401, asks="Basic", looked_in=LOOKED_IN), ["registry", "registry-login"], "/run/auth.json"),
        (RegistryFacts("r", 200, asks="Basic", login=LOGIN), ["registry", "registry-login-accepted"], LOGIN),
        (RegistryFacts("r", 403, asks="Basic", login=LOGIN), ["registry", "registry-login"], "rejects that of"),
        (RegistryFacts("r", 502), ["registry-unreachable"], "HTTP status 502"),
        (RegistryFacts("r", problem=ProgramFailed("no route", code="certificate")), ["certificate"], "no route"),
    ],
)
def test_facts_of_a_registry_are_judged(facts: RegistryFacts, codes: list[str], words: str) -> None:
    findings = list(judge_registry(facts))
    assert [finding.code for finding in findings] == codes
    assert words in " ".join(finding.message for finding in findings)
    failed = {"registry-login", "registry-unreachable", "certificate"}
    assert [finding.code for finding in findings if finding.severity is Severity.ERROR] == [
        code for code in codes if code in failed
    ]


@pytest.mark.parametrize(("secret", "status"), [(oci.PASSWORD, 200), ("expired", 401)])
@pytest.mark.parametrize("kind", ["basic", "bearer"])
def test_login_of_a_file_is_sent_if_the_registry_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, secret: str, status: int
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    with oci.serving(oci.Registry()) as registry:
        path = tmp_path / ".docker/config.json"
        path.parent.mkdir()
        auth = b64encode(f"{oci.USER}:{secret}".encode()).decode()
        path.write_text(json.dumps({"auths": {registry.address: {"auth": auth}}}))
        public = ask_registry(registry.address)
        assert (public.status, public.asks, public.login, public.trust) == (200, None, None, "")
        assert [given for _, _, given in registry.asked] == [""], "no login is sent to a registry that asks for none"
        registry.login = kind
        facts = ask_registry(registry.address)
    assert (facts.status, str(facts.asks).lower(), facts.login) == (status, kind, str(path))
    assert secret not in repr(facts)


def test_unreachable_registry_is_a_problem_and_no_error() -> None:
    facts = ask_registry("127.0.0.1:9")
    assert facts.status is None
    assert facts.problem is not None
    assert facts.problem.code == "registry-unreachable"
