"""The door to uv: what it trusts, and what its failures mean."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolkit.pins.index.uv import Uv, area_errors, index_address
from toolkit.support.errors import MissingOnHost, ProgramFailed

_PROGRAM = """#!/bin/sh
env | grep -E '^(UV_SYSTEM_CERTS|SSL_CERT_FILE)=' | sort
echo "error: Request failed after 3 retries" >&2
echo "  cause: {cause}" >&2
exit {status}
"""


def uv(tmp_path: Path, cause: str, status: int) -> Uv:
    program = tmp_path / "uv"
    program.write_text(_PROGRAM.format(cause=cause, status=status))
    program.chmod(0o755)
    return Uv(str(program), tmp_path / "cache", tmp_path)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "UV_SYSTEM_CERTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.mark.parametrize(
    ("cause", "code", "words"),
    [
        ("invalid peer certificate: UnknownIssuer", "certificate", "authority that is not trusted"),
        ("invalid peer certificate: Expired", "certificate", "expired or not yet valid"),
        ("dns error: failed to lookup address", "index-unreachable", "index cannot be reached"),
        (
            "error sending request for url (http://127.0.0.1:9/simple/six/)",
            "index-unreachable",
            "index http://127.0.0.1:9 cannot be reached",
        ),
    ],
)
def test_refused_certificate_differs_from_missing_network(tmp_path: Path, cause: str, code: str, words: str) -> None:
    with pytest.raises(ProgramFailed, match=words) as raised:
        uv(tmp_path, cause, 2).call(["pip", "compile"], tmp_path)
    assert raised.value.code == code
    assert raised.value.fix


@pytest.mark.parametrize(("number", "code"), [(28, "disk-full"), (122, "disk-full"), (5, "system-error")])
def test_a_disk_on_which_uv_cannot_write_is_named(tmp_path: Path, number: int, code: str) -> None:
    cause = f"failed to write to file {tmp_path}/cache/x: {os.strerror(number)} (os error {number})"
    with pytest.raises(MissingOnHost, match=f"cannot write {tmp_path}/cache: {os.strerror(number)}") as raised:
        uv(tmp_path, cause, 2).call(["pip", "compile"], tmp_path)
    assert raised.value.code == code
    assert ("CTK_HOME" in (raised.value.fix or "")) is (code == "disk-full")


def test_a_question_to_uv_on_a_full_disk_names_the_work_area(tmp_path: Path) -> None:
    words = f"cannot write {tmp_path}: No space left on device .* free"
    with pytest.raises(MissingOnHost, match=words) as raised, area_errors(tmp_path):
        Path("/dev/full").write_text("x")
    assert raised.value.code == "disk-full"
    with pytest.raises(FileNotFoundError), area_errors(tmp_path):
        (tmp_path / "none").read_text()


def test_uv_trusts_what_this_host_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    asked = uv(tmp_path, "", 0)
    assert asked.call(["a"], tmp_path).stdout == "UV_SYSTEM_CERTS=true\n"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(bundle))
    assert asked.call(["b"], tmp_path).stdout == f"SSL_CERT_FILE={bundle}\nUV_SYSTEM_CERTS=true\n"


def test_the_index_is_the_one_that_uv_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    assert index_address() == "https://pypi.org/simple"
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, f"https://{name}.example/simple")
        assert name in index_address()


def test_uv_lock_files_are_removed_after_call(tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\n: > "$TMPDIR/uv-setuptools-1.lock"\necho "$TMPDIR"\n')
    program.chmod(0o755)
    uv = Uv(str(program), tmp_path / "cache", tmp_path / "area/tmp")
    answer = uv.call(["pip", "compile"], tmp_path / "area")
    assert answer.stdout.startswith(str(tmp_path / "area/tmp/.ctk-work-"))
    assert not list((tmp_path / "area/tmp").iterdir())


def test_a_resolver_is_stopped_at_its_time_limit(tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    program.chmod(0o755)
    with pytest.raises(ProgramFailed, match=r"no compatible versions within 0\.2 s") as raised:
        Uv(str(program), tmp_path / "cache", tmp_path, patience=0.2).call(["a"], tmp_path)
    assert raised.value.code == "resolver-timeout"
    assert raised.value.fix


def test_answer_that_is_too_old_to_be_used_is_removed(tmp_path: Path) -> None:
    asked = uv(tmp_path, "", 0)
    asked.call(["first"], tmp_path)
    (first,) = (tmp_path / "cache/ctk-answers").iterdir()
    os.utime(first, (0, 0))
    asked.call(["second"], tmp_path)
    assert not first.exists()
    assert len(list((tmp_path / "cache/ctk-answers").iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", pytest.param(b"[" * 100_000, id="deep"), b"{}", b"[]", b"\xff"])
def test_kept_answer_that_is_damaged_is_asked_again(tmp_path: Path, damage: bytes) -> None:
    asked, project = uv(tmp_path, "", 0), tmp_path / "project"
    project.mkdir()
    found = asked.call(["first"], project)
    (kept,) = (tmp_path / "cache/ctk-answers").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert asked.call(["first"], project) == found
    assert kept.read_bytes() == whole
