"""Options of the runtime."""

from __future__ import annotations

from toolkit.runtime.options import container_environment


def test_the_users_site_directory_is_shut_out_of_either_runtime() -> None:
    assert container_environment() == {
        "APPTAINERENV_PYTHONNOUSERSITE": "1",
        "SINGULARITYENV_PYTHONNOUSERSITE": "1",
    }
