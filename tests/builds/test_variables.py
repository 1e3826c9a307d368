"""Which of the user's variables of the runtime decide what is in an image."""

from __future__ import annotations

import pytest

from toolkit.builds.variables import variables_digest
from toolkit.recipes.model import Index

INDEX = Index("company", "https://pypi.example.org/simple")


@pytest.mark.parametrize("name", ["APPTAINERENV_X", "SINGULARITYENV_X", "APPTAINERENV_PREPEND_PATH"])
def test_each_variable_changes_the_digest(name: str) -> None:
    one, other = variables_digest((), {name: "1"}), variables_digest((), {name: "2"})
    assert len({variables_digest((), {}), one, other}) == 3
    assert one == variables_digest((), {name: "1", "HOME": "/root", "APPTAINER_BIND": "/data"})


def test_no_variable_gives_no_digest() -> None:
    assert variables_digest((), {"PATH": "/bin", "APPTAINER_CACHEDIR": "/x", "SINGULARITY_TMPDIR": "/y"}) == ""


@pytest.mark.parametrize(
    "name",
    [
        "http_proxy",
        "HTTPS_PROXY",
        "SSL_CERT_FILE",
        "PIP_CERT",
        "UV_INDEX_COMPANY_USERNAME",
        "UV_INDEX_COMPANY_PASSWORD",
    ],
)
def test_proxies_certificates_and_credentials_do_not_count(name: str) -> None:
    assert variables_digest([INDEX], {f"APPTAINERENV_{name}": "secret"}) == ""


def test_name_and_value_are_kept_apart_and_order_does_not_count() -> None:
    assert variables_digest((), {"APPTAINERENV_A": "1", "APPTAINERENV_B": "2"}) == variables_digest(
        (), {"APPTAINERENV_B": "2", "APPTAINERENV_A": "1"}
    )
    assert variables_digest((), {"APPTAINERENV_A": "B1"}) != variables_digest((), {"APPTAINERENV_AB": "1"})


def test_value_is_not_in_the_digest() -> None:
    assert "hunter2" not in variables_digest((), {"APPTAINERENV_X": "hunter2"})
