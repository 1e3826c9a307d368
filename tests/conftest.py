"""What all tests rely on."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.schemas import check_documents

if TYPE_CHECKING:
    from collections.abc import Iterator

# A CI system, nohup or a shell's `&` may start pytest with these ignored, and programs inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


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
