"""Credentials in what ctk shows and logs: what must never be in it, and what must stay."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.support.processes import visible_command
from toolkit.support.redaction import redact, redact_variable
from toolkit.support.secret_words import holds_secret

WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=4, max_size=12)
SECRET = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.+!@:%?#", min_size=8, max_size=24).map(lambda s: f"S3{s}T")
MANY = examples(200)


@MANY
@given(st.sampled_from(["https", "http", "docker", "git+ssh"]), WORD, SECRET)
def test_credentials_in_an_address_never_survive(scheme: str, user: str, secret: str) -> None:
    cleaned = redact(f"proxy={scheme}://{user}:{secret}@proxy.example:3128/x and more")
    assert secret not in cleaned
    assert f":{secret[:4]}" not in cleaned
    assert "proxy.example:3128/x and more" in cleaned


@MANY
@given(st.sampled_from(["https_proxy=", "APPTAINERENV_HTTP_PROXY=", "'all_proxy': '"]), WORD, SECRET)
def test_a_proxy_without_a_scheme_is_shown_without_its_password(name: str, user: str, secret: str) -> None:
    cleaned = redact(f"+ env {name}{user}:{secret}@proxy.example:3128 next")
    assert secret not in cleaned
    assert f"{name}(hidden)@proxy.example:3128 next" in cleaned


@pytest.mark.parametrize("scheme", ["", "http://"])
@pytest.mark.parametrize("name", ["http_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_the_login_of_this_hosts_proxy_is_hidden_wherever_a_script_prints_it(
    monkeypatch: pytest.MonkeyPatch, name: str, scheme: str
) -> None:
    assert redact("ann:pa/ss@w0rd@proxy:9 and more") == "ann:pa/ss@w0rd@proxy:9 and more"
    monkeypatch.setenv(name, f"{scheme}ann:pa/ss@w0rd@proxy:9")
    assert redact("ann:pa/ss@w0rd@proxy:9 and more") == "(hidden)@proxy:9 and more"
    monkeypatch.setenv(name, "ann@proxy:9")
    assert redact("mail ann@proxy:9") == "mail ann@proxy:9"


def test_a_registrys_password_without_a_scheme_never_survives() -> None:
    said = redact("could not parse reference: ann:S3CRET@host.example:5000/x/y:1, then")
    assert said == "could not parse reference: (hidden)@host.example:5000/x/y:1, then"


WEBHOOKS = [
    "https://hooks.slack.com/services/T000/B000/{}",
    "https://hooks.slack.com/triggers/T000/{}",
    "https://discord.com/api/webhooks/123/{}",
    "https://lab.webhook.office.com/webhookb2/{}",
    "https://chat.example.org/hooks/{}",
    "https://chat.googleapis.com/v1/spaces/x/messages?key=1&token={}",
    "https://prod-1.logic.azure.com/workflows/x?api-version=1&sig={}",
]


@pytest.mark.parametrize("address", WEBHOOKS)
def test_a_webhook_never_survives(address: str) -> None:
    cleaned = redact(f"notify {address.format('S3CRETS3CRET')} then")
    assert "S3CRET" not in cleaned
    assert "(hidden)" in cleaned
    assert cleaned.endswith(" then")


@pytest.mark.parametrize(
    "address",
    [
        "https://s3.example/x.whl?X-Amz-Credential={}&X-Amz-Signature={}",
        "https://x.blob.example/x?sv=2024&sig={}#sha256=0",
    ],
)
def test_a_signature_never_survives(address: str) -> None:
    cleaned = redact(f"403 Forbidden for '{address.format('S3CRET', 'S3CRET')}' twice")
    assert "S3CRET" not in cleaned
    assert "/x" in cleaned
    assert cleaned.endswith(" twice")


TOKENS = [
    *("ghp_0123456789abcdefghij0123456789abcdef", "gho_0123456789abcdefghij", "github_pat_11ABCDEFG0_abcdefghij"),
    *("glpat-0123456789abcdefghij", "hf_abcdefghijABCDEFGHIJabcdefghijABCD", "xoxb-123456789012-abcdefghij"),
    *("AKIAIOSFODNN7EXAMPLE", "pypi-AgEIcHlwaS5vcmcCJDU", "nvapi-0123456789abcdefghij", f"sk-proj-{'a1B' * 12}"),
    *(f"npm_{'a1B' * 12}", f"AIza{'b2_' * 12}", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3"),
]


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_a_secret_under_any_name(token: str) -> None:
    assert holds_secret("GREETING", token)
    assert holds_secret("HEADER", f"Bearer {token}")
    cleaned = redact(f"login with {token}, please")
    assert cleaned == "login with (hidden), please"


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        *(("DB_PWD", "geheim", True), ("db_pwd", "1234", True), ("MY_PWD_1", "geheim", True)),
        *(("PWD", "/work", False), ("OLDPWD", "/work", False), ("START_PWD", "/work", False)),
    ],
)
def test_pwd_in_a_name_means_a_password_but_not_a_directory(name: str, value: str, secret: bool) -> None:
    assert holds_secret(name, value) is secret


DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    "text",
    [
        "https://download.pytorch.org/whl/cu121 ann@login1 /usr/bin/apptainer",
        f"docker://ubuntu:22.04@{DIGEST}",
        f"docker://127.0.0.1:5000/lab/tiny@{DIGEST}",
        f"ubuntu:22.04@{DIGEST} registry.example:5000/lab/tiny@{DIGEST} rsync ann@host.example:/data ann@h:22/x",
        "git@github.com:x/y 12:30:01 node1/x",
        "git+https://github.com/x/y@v1.0",
        "docker://registry.example:5000/lab/tiny:1.0",
        "https://files.pythonhosted.org/packages/pre_commit_hooks-1.0-py3-none-any.whl",
        "is it https://pypi.org/simple? Or another",
        "hf_transfer hf_hub_download glob-0.1 sk-learn pypi-simple task-0123456789 AKIA github_pat_ xoxb-",
        "日本語 \x1b \udcff",
    ],
)
def test_what_holds_no_credential_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece", ["://x:", "x://", "://", "://x?", "?token", "http://h/", "sk-", "eyJ.", "ghp_", "xoxb-"]
)
def test_a_hostile_line_costs_no_time(piece: str) -> None:
    started = time.monotonic()
    redact(piece * 20_000)
    assert time.monotonic() - started < 5


@MANY
@given(st.sampled_from(["PIP_TOKEN", "UV_HTTP_AUTH", "APPTAINERENV_API_KEY", "PIP_INDEX_URL", "http_proxy"]), SECRET)
def test_a_shown_command_holds_no_credential(name: str, secret: str) -> None:
    address = f"https://ann:{secret}@pypi.example/simple"
    shown = visible_command(["uv", "--index-url", address, f"docker://ann:{secret}@h/x"], {name: address})
    assert secret not in shown
    assert secret[:6] not in shown
    assert shown.startswith(f"{name}=")


def test_an_ordinary_variable_keeps_its_value() -> None:
    assert redact_variable("APPTAINER_TMPDIR", "/scratch/tmp") == "/scratch/tmp"
    assert redact_variable("http_proxy", "ann:x@proxy:3128") == "(hidden)@proxy:3128"
    assert redact_variable("GREETING", "ctk-base64:c2VjcmV0") == "(hidden)"
