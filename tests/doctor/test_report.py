"""The report for a support ticket: what must never be in it."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.doctor.test_rules import GOOD
from tests.examples import examples
from toolkit.doctor.report import anonymous, environment_lines, report
from toolkit.doctor.rules import judge_host

WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=4, max_size=12).filter(
    lambda word: word not in ("user", "home", "host", "data", "example", "root")
)
SECRET = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.+!@:%", min_size=8, max_size=24).map(lambda text: f"S3{text}T")
AROUND = st.sampled_from(["", " ", "=", ":", "'", '"', "(", ")", ",", "/", "\n", "-"])
MANY = examples(200)


def clean(text: str, *, user: str = "ann", home: str = "/home/ann", host: str = "login1") -> str:
    return anonymous(text, {user: "USER", home: "~", host: "HOST"})


@MANY
@given(st.lists(WORD, min_size=3, max_size=3, unique=True), AROUND, AROUND)
def test_user_home_and_host_never_survive(words: list[str], before: str, after: str) -> None:
    user, host, place = words
    home = f"/{place}/{user}"
    spoken = [user, home, f"{home}/data", host, host.upper(), f"{host}.example.org"]
    cleaned = clean(" ".join(f"{before}{word}{after}" for word in spoken), user=user, home=home, host=host)
    for name in (user, home, host):
        assert not re.search(rf"\b{re.escape(name)}\b", cleaned, re.IGNORECASE), cleaned
    assert {"USER", "~", "HOST"} <= set(re.findall(r"[A-Z]+|~", cleaned))
    assert "example.org" not in cleaned, "a host's domain tells whose it is"


def test_ordinary_words_are_kept() -> None:
    text = "https://download.pytorch.org/whl/cu121 joann planning /usr/bin/apptainer login10"
    assert clean(text) == text
    assert clean("as root in /root", user="root", home="/root") == "as root in /root"
    assert clean("u x", user="u") == "USER x", "a name of one letter is a name"


# --- the environment

NAMES = ["PIP_INDEX_TOKEN", "CTK_WEBHOOK", "APPTAINERENV_WANDB_API_KEY", "SINGULARITYENV_S3CRETNAME", "UV_HTTP_AUTH"]
JSON = '{"type": "service_account", "private_key": "S3CRETVALUE"}'
SIGNED = "https://bucket.s3.example/simple/?X-Amz-Credential=S3CRETVALUE&X-Amz-Signature=S3CRETVALUE"


def test_the_whole_report_is_redacted_and_still_useful() -> None:
    me, host = str(Path.home()), socket.gethostname()
    facts = replace(GOOD, user="ann", quota=f"{me}: 18G of 20G on {host}, mnt-proj7 \x1b[2J")
    environment = {
        **dict.fromkeys(NAMES, "S3CRETVALUE"),
        "APPTAINER_DOCKER_PASSWORD": "S3CRETVALUE",
        "APPTAINER_DOCKER_USERNAME": "ann42",
        "APPTAINERENV_LD_PRELOAD": "/home/S3CRETVALUE.so",
        "CUDA_HOME": JSON,
        "PIP_INDEX_URL": "https://ann:S3CRETVALUE@pypi.example/S3CRETVALUE/simple",
        "UV_DEFAULT_INDEX": SIGNED,
        "http_proxy": "ann:S3CRETVALUE@proxy.example:3128",
        "https_proxy": "http://ann:S3/CRET?VAL@UE@proxy.example:3128",
        "CUDA_VISIBLE_DEVICES": "0",
        "APPTAINER_BIND": "/data/ann/sets,/scratch/ann42:/mnt:ro",
        "SBATCH_ACCOUNT": "proj7",
        "HISTFILE": "not mentioned",
    }
    text = report(facts, judge_host(facts), environment)
    assert "S3CRET" not in text
    assert "CRET?" not in text
    for line in (
        "APPTAINER_DOCKER_PASSWORD is set",
        "APPTAINER_DOCKER_USERNAME is set",
        "APPTAINERENV_LD_PRELOAD is set",
        "APPTAINERENV_*: 1 more set",
        "SINGULARITYENV_*: 1 more set",
        "CTK_*: 1 more set",
        "CUDA_HOME is set",
        "CUDA_VISIBLE_DEVICES=0",
        "APPTAINER_BIND=/data/USER/sets,/scratch/USER:/mnt:ro",
        "PIP_INDEX_URL=https://pypi.example",
        "UV_DEFAULT_INDEX=https://bucket.s3.example",
        "http_proxy=proxy.example:3128",
        "https_proxy=(hidden)",
    ):
        assert line in text.splitlines(), text
    assert "HISTFILE" not in text
    assert "[ok] runtime: Runtime: apptainer 1.4.5" in text
    assert f" on {host}" not in text
    assert "mnt-ACCOUNT" in text
    assert "\x1b" not in text


PREFIXES = ("APPTAINERENV_", "SINGULARITYENV_", "APPTAINER_", "SINGULARITY_", "CTK_", "PIP_", "UV_", "SLURM_", "CUDA_")
ANY_NAME = st.builds(str.__add__, st.sampled_from(("", *PREFIXES)), st.text("ABCXYZ_019abc", min_size=1, max_size=12))
IN_A_VALUE = st.sampled_from(
    [
        "{}",
        '{{"token": "{}"}}',
        "https://ann:{}@pypi.example/simple",
        "https://{}@pypi.example/simple",
        "https://pypi.example/{}/simple",
        "https://pypi.example/simple?token={}",
        "https://s3.example/x?X-Amz-Signature={}#a",
        "https://pypi.example/simple#{}",
        "ann:{}@proxy.example:3128",
        "export X='{}'\nnext",
        "https://a.example https://u:{}@b.example",
    ]
)


@MANY
@given(st.dictionaries(ANY_NAME, st.tuples(IN_A_VALUE, SECRET), max_size=8))
def test_no_value_of_a_variable_that_is_not_listed_is_ever_shown(variables: dict[str, tuple[str, str]]) -> None:
    text = "\n".join(environment_lines({name: value.format(secret) for name, (value, secret) in variables.items()}))
    for value, secret in variables.values():
        assert secret not in text
        assert secret[:6] not in text
        assert value.format(secret) not in text


@MANY
@given(
    st.dictionaries(
        st.from_regex(r"(APPTAINERENV|SINGULARITYENV|CTK|PIP|UV)_S3[A-Z0-9]{6,20}T", fullmatch=True), SECRET
    )
)
def test_no_name_that_a_user_chose_is_ever_shown(variables: dict[str, str]) -> None:
    text = "\n".join(environment_lines(variables))
    assert not any(name in text or name.partition("_")[2] in text for name in variables)


ADDRESSED = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "http_proxy", "HTTPS_PROXY")
OTHERWISE = ("CTK_HOME", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "APPTAINER_NV", "APPTAINER_BIND")


@MANY
@given(st.sampled_from(ADDRESSED), IN_A_VALUE, SECRET)
def test_an_address_is_shown_without_what_opens_it(name: str, value: str, secret: str) -> None:
    assume(value != "{}" or not re.match(r"[\w.-]+:\d+(?:/|$)", secret))  # which is a host and a port, and shown
    [line] = environment_lines({name: value.format(secret)})
    assert secret not in line
    assert secret[:6] not in line


@MANY
@given(st.sampled_from(OTHERWISE), IN_A_VALUE.filter(lambda value: value != "{}"), SECRET)
def test_a_listed_variable_with_an_unexpected_value_is_only_reported_as_set(name: str, value: str, secret: str) -> None:
    assert environment_lines({name: value.format(secret)}) == [f"{name} is set"]
