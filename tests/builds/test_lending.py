"""What a build gets of its host: certificates and proxies, and where neither may stand."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from toolkit.builds import lending
from toolkit.builds.lending import LENT, lend
from toolkit.builds.values import Credential, Proxy, export, read_value
from toolkit.recipes.model import Index
from toolkit.runtime.options import escape
from toolkit.support.certificates import Bundle

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nMIIK\n-----END PRIVATE KEY-----"
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
    loan = lend(tmp_path, "apptainer", environment=SECRET)
    for file in loan.files:
        file.run()
    assert loan.binds == (f"{tmp_path}/lent:{LENT}:ro",)
    assert (tmp_path / "lent/certificates.pem").read_text().count("BEGIN CERTIFICATE") == 2
    assert f'CAInfo "{LENT}/certificates.pem"' in (tmp_path / "lent/apt.conf").read_text()
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"):
        assert loan.environment[f"APPTAINERENV_{name}"] == f"{LENT}/certificates.pem"
    assert loan.environment["APPTAINERENV_APT_CONFIG"] == f"{LENT}/apt.conf"


@pytest.mark.usefixtures("bundles")
def test_a_variable_that_the_user_sets_for_the_build_stays(tmp_path: Path) -> None:
    loan = lend(tmp_path, "singularity", environment={"SINGULARITYENV_SSL_CERT_FILE": "/mine.pem"})
    assert "SINGULARITYENV_SSL_CERT_FILE" not in loan.environment
    assert "SINGULARITYENV_PIP_CERT" in loan.environment


def test_without_certificates_only_proxies_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "host_bundles", lambda _environment: ())
    monkeypatch.setenv("https_proxy", SECRET["https_proxy"])
    loan = lend(tmp_path, "apptainer", environment=SECRET)
    assert (loan.binds, loan.files) == ((), ())
    assert loan.environment == {
        "APPTAINERENV_https_proxy": Proxy("https_proxy"),
        "APPTAINERENV_NO_PROXY": Proxy("NO_PROXY"),
    }
    assert "S3CRET" not in repr(loan)
    assert read_value(loan.environment["APPTAINERENV_https_proxy"]) == "http://ann:S3CRET\\$x@proxy.example:3128"


def test_a_script_makes_the_same_files_and_holds_no_certificate(tmp_path: Path, bundles: tuple[Bundle, ...]) -> None:
    bundles[0].path.write_text(f"# a comment\n{PRIVATE_KEY}\n{bundles[0].path.read_text()}# and more")
    by_ctk, by_hand = (lend(tmp_path / name, "apptainer", environment=SECRET).files for name in ("ctk", "by hand"))
    for name in ("ctk", "by hand"):
        (tmp_path / name).mkdir()
    for file in by_ctk:
        file.run()
    script = "\n".join(["set -eu", *(file.shell() for file in by_hand)])
    assert "BEGIN CERTIFICATE-----\nMII" not in script
    subprocess.run(["sh"], input=script, text=True, check=True)
    for path in (tmp_path / "ctk/lent").iterdir():
        other = tmp_path / "by hand/lent" / path.name
        assert (other.read_text(), other.stat().st_mode) == (path.read_text(), path.stat().st_mode)
        assert "PRIVATE" not in other.read_text()
    assert bundles[0].path.name == "a b.pem", "a blank in a name is quoted"


INDEX = Index("company", "https://pypi.company.example/simple")
USER, PASSWORD = "UV_INDEX_COMPANY_USERNAME", "UV_INDEX_COMPANY_PASSWORD"


@pytest.mark.parametrize("place", ["variables", "netrc"])
def test_a_script_reads_credentials_where_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(lending, "host_bundles", lambda _environment: ())
    value = "S3CRET$(id)`id`'"
    if place == "variables":
        monkeypatch.setenv(USER, "ann")
        monkeypatch.setenv(PASSWORD, value)
    else:
        (tmp_path / "netrc").write_text(f"machine pypi.company.example login ann password {value}\n")
        monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    loan = lend(tmp_path, "apptainer", [INDEX])
    wanted = {f"APPTAINERENV_{name}": Credential(name, INDEX) for name in (USER, PASSWORD)}
    assert {name: value for name, value in loan.environment.items() if name in wanted} == wanted
    script = "\n".join(["set -eu", *(export(name, value) for name, value in wanted.items()), "env -0"])
    assert "S3CRET" not in script
    done = subprocess.run(["sh"], input=script, text=True, capture_output=True, check=True)
    for name, credential in wanted.items():
        assert f"{name}={read_value(credential)}" in done.stdout.split("\0")
    assert f"APPTAINERENV_{PASSWORD}={escape(value)}" in done.stdout.split("\0")
    if place == "variables":
        monkeypatch.delenv(PASSWORD)
        refused = subprocess.run(["sh"], input=script, text=True, capture_output=True, check=False)
        assert refused.returncode != 0
        assert PASSWORD in refused.stderr, "a script without the password ends before the build"
