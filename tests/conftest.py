"""What all tests rely on."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.real import shared
from tests.schemas import check_documents
from toolkit.support.errors import CtkError
from toolkit.support.explanations import explanations
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A CI system, nohup or a shell's `&` may start pytest with these ignored, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Remove what the workers shared, after the last of them ended."""
    if not hasattr(session.config, "workerinput"):
        shared.remove()


@pytest.fixture(scope="session", autouse=True)
def _documents_of_programs() -> Iterator[None]:
    """Check every document of ctk, in the output of every program that any test runs, against its schema."""
    run = subprocess.run

    def checked(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[Any]:
        done = run(*arguments, **options)
        output = done.stdout or ""
        check_documents(output if isinstance(output, str) else output.decode(errors="replace"))
        return done

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "run", checked)
        yield


@pytest.fixture(scope="session")
def _directory_for_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def _empty_home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, _directory_for_home: Path) -> None:
    """Unit tests see an empty home directory, not that of whoever runs them."""
    if {"real", "soak"} & {*request.path.parts}:
        return
    monkeypatch.setenv("HOME", str(_directory_for_home))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)


# A busy machine is no fault of what is tested.
settings.register_profile("ctk", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# For `make check`: a tenth of the examples, in every test (tests/examples.py).
settings.register_profile("check", settings.get_profile("ctk"), max_examples=10, database=None)
settings.load_profile("ctk")


# A finding or an error of a code that the catalogue does not have, or in a severity that it does not list, fails the
# test that makes it: a rule without an entry cannot be tested.
_CATALOGUE = explanations()
_make_finding, _make_error = Finding.__init__, CtkError.__init__


def _checked_finding(self: Finding, *values: Any, **named: Any) -> None:
    _make_finding(self, *values, **named)
    assert self.code in _CATALOGUE, f"{self.code} has no entry in the codes/ of its room"
    assert self.severity in _CATALOGUE[self.code].severities, f"{self.code} is not listed as {self.severity}"


def _checked_error(self: CtkError, *values: Any, **named: Any) -> None:
    _make_error(self, *values, **named)
    assert self.code in _CATALOGUE, f"{self.code} has no entry in the codes/ of its room"
    assert Severity.ERROR in _CATALOGUE[self.code].severities, f"{self.code} is not listed as an error"


Finding.__init__, CtkError.__init__ = _checked_finding, _checked_error  # type: ignore[method-assign]
