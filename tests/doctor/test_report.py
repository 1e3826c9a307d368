"""The report for a support ticket: what must never be in it."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doctor.test_rules import GOOD
from toolkit.doctor.report import redact, report
from toolkit.doctor.rules import judge

WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=4, max_size=12).filter(
    lambda word: word not in ("user", "home", "host", "data", "example", "root")
)
SECRET = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.+!@:%", min_size=8, max_size=24).map(lambda text: f"S3{text}T")
AROUND = st.sampled_from(["", " ", "=", ":", "'", '"', "(", ")", ",", "/", "\n", "-"])
MANY = settings(max_examples=200, deadline=None)


def clean(text: str, *, user: str = "ann", home: str = "/home/ann", host: str = "login1") -> str:
    return redact(text, user=user, home=home, host=host)


@MANY
@given(st.lists(WORD, min_size=3, max_size=3, unique=True), AROUND, AROUND)
def test_user_home_and_host_never_survive(words: list[str], before: str, after: str) -> None:
    user, host, place = words
    home = f"/{place}/{user}"
    spoken = [user, home, f"{home}/data", host, host.upper(), f"{host}.example.org"]
    cleaned = clean(" ".join(f"{before}{word}{after}" for word in spoken), user=user, home=home, host=host)
    for name in (user, home, host):
        assert not re.search(rf"\b{re.escape(name)}\b", cleaned, re.IGNORECASE), cleaned
    assert {"USER", "HOME", "HOST"} <= set(re.findall(r"[A-Z]+", cleaned))


@MANY
@given(st.sampled_from(["https", "http", "docker", "git+ssh"]), WORD, SECRET)
def test_credentials_in_an_address_never_survive(scheme: str, user: str, secret: str) -> None:
    cleaned = clean(f"proxy={scheme}://{user}:{secret}@proxy.example:3128/x and more")
    assert secret not in cleaned
    assert f":{secret[:4]}" not in cleaned
    assert "proxy.example:3128/x and more" in cleaned


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
    cleaned = clean(f"notify {address.format('S3CRETS3CRET')} then")
    assert "S3CRET" not in cleaned
    assert "(hidden)" in cleaned
    assert cleaned.endswith(" then")


def test_ordinary_words_stay() -> None:
    text = "https://download.pytorch.org/whl/cu121 joann planning /usr/bin/apptainer login10"
    assert clean(text) == text
    assert clean("as root in /root", user="root", home="/root") == "as root in /root"
    assert clean("u x", user="u") == "USER x", "a name of one letter is a name"


NAMES = ["PIP_INDEX_TOKEN", "APPTAINER_DOCKER_PASSWORD", "CTK_WEBHOOK", "UV_HTTP_AUTH", "SINGULARITY_DOCKER_PASSPHRASE"]


def test_the_whole_report_is_redacted_and_still_useful() -> None:
    me, host = str(Path.home()), socket.gethostname()
    facts = replace(GOOD, user="ann", quota=f"{me}: 18G of 20G on {host}")
    environment = {
        **dict.fromkeys(NAMES, "S3CRETVALUE"),
        "PIP_INDEX_URL": "https://ann:S3CRETVALUE@pypi.example/simple",
        "http_proxy": "ann:S3CRETVALUE@proxy.example:3128",
        "CUDA_VISIBLE_DEVICES": "0",
        "APPTAINER_BIND": "/data/ann/sets",
        "HISTFILE": "not mentioned",
    }
    text = report(facts, judge(facts), environment)
    assert "S3CRET" not in text
    assert "CTK_WEBHOOK=(hidden)" in text, "that it is set is worth knowing"
    assert "CUDA_VISIBLE_DEVICES=0" in text
    assert "APPTAINER_BIND=/data/USER/sets" in text
    assert "PIP_INDEX_URL=https://(hidden)@pypi.example/simple" in text
    assert "http_proxy=(hidden)@proxy.example:3128" in text
    assert "HISTFILE" not in text
    assert "[ok] runtime: Runtime: apptainer 1.4.5" in text
    assert f" on {host}" not in text
