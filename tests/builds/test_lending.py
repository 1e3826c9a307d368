"""What a build gets of its host: certificates and proxies, and where neither may stand."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.builds import lending
from toolkit.builds.lending import LENT, lend, lending_commands
from toolkit.support.certificates import Bundle

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
SECRET = {"https_proxy": "http://ann:S3CRET$x@proxy.example:3128", "NO_PROXY": "localhost", "PATH": "/bin"}


@pytest.fixture
def bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Bundle, ...]:
    made = tuple(Bundle(tmp_path / name, "x") for name in ("a b.pem", "system.pem"))
    for number, bundle in enumerate(made):
        bundle.path.write_text(f"{BLOCK.replace('MIIB', f'MII{number}')}\n")
    monkeypatch.setattr(lending, "host_bundles", lambda _environment: made)
    return made


@pytest.mark.usefixtures("bundles")
def test_certificates_are_bound_where_every_image_has_a_directory(tmp_path: Path) -> None:
    loan = lend(tmp_path, "apptainer", SECRET)
    assert loan.binds == (f"{tmp_path}/lent:{LENT}:ro",)
    assert (tmp_path / "lent/certificates.pem").read_text().count("BEGIN CERTIFICATE") == 2
    assert f'CAInfo "{LENT}/certificates.pem"' in (tmp_path / "lent/apt.conf").read_text()
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"):
        assert loan.environment[f"APPTAINERENV_{name}"] == f"{LENT}/certificates.pem"
    assert loan.environment["APPTAINERENV_APT_CONFIG"] == f"{LENT}/apt.conf"


@pytest.mark.usefixtures("bundles")
def test_a_variable_that_the_user_sets_for_the_build_stays(tmp_path: Path) -> None:
    loan = lend(tmp_path, "singularity", {"SINGULARITYENV_SSL_CERT_FILE": "/mine.pem"})
    assert "SINGULARITYENV_SSL_CERT_FILE" not in loan.environment
    assert "SINGULARITYENV_PIP_CERT" in loan.environment


def test_without_certificates_only_proxies_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "host_bundles", lambda _environment: ())
    loan = lend(tmp_path, "apptainer", SECRET)
    assert loan.binds == ()
    assert loan.environment == {
        "APPTAINERENV_https_proxy": "http://ann:S3CRET\\$x@proxy.example:3128",
        "APPTAINERENV_NO_PROXY": "localhost",
    }
    assert list(tmp_path.iterdir()) == []


def test_the_commands_of_a_dry_run_lend_the_same_and_hold_no_secret(
    tmp_path: Path, bundles: tuple[Bundle, ...]
) -> None:
    by_ctk, by_hand = tmp_path / "ctk", tmp_path / "by hand"
    by_ctk.mkdir()
    by_hand.mkdir()
    loan = lend(by_ctk, "apptainer", SECRET)
    commands, binds = lending_commands(by_hand, "apptainer", SECRET)
    assert "S3CRET" not in "\n".join(commands)
    assert binds == (f"{by_hand}/lent:{LENT}:ro",)
    script = "\n".join(["set -eu", *commands, "env"])
    done = subprocess.run(["sh", "-c", script], env=SECRET, capture_output=True, text=True, check=True)
    for name in loan.environment:
        assert f"{name}=" in done.stdout
    for file in (by_ctk / "lent").iterdir():
        assert (by_hand / "lent" / file.name).read_text() == file.read_text()
    assert bundles[0].path.name == "a b.pem", "a blank in a name is quoted"


@given(st.text("$`\\a(){}'~*! ", max_size=30))
def test_the_shell_of_the_runtime_expands_nothing_in_a_proxy(value: str) -> None:
    """Apptainer evaluates APPTAINERENV_X as the text between double quotes, in which it escapes those of the value."""
    script = f'printf %s "{lending._escaped(value)}"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == value
