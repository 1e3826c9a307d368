"""Commands for an image."""

from __future__ import annotations

import pytest

from toolkit.runtime.commands import check_command
from toolkit.support.errors import WrongInput


@pytest.mark.parametrize("command", [(), ("",), ("a\0",), ("python", "\0"), ("X=1", "python"), ("a b",), ("a 'x",)])
def test_a_command_that_cannot_run_is_refused(command: tuple[str, ...]) -> None:
    with pytest.raises(WrongInput):
        check_command(command)
