"""Values of a build that are read only where they are used."""

from __future__ import annotations

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from toolkit.builds.values import Proxy, export
from toolkit.runtime.options import escape


@given(st.text("$`\\\\a(){}'~*!\" \n", max_size=30))
def test_a_script_escapes_a_value_as_ctk_does(value: str) -> None:
    script = export("X", Proxy("SECRET")) + '\nprintf %s "$X"'
    done = subprocess.run(
        ["sh", "-c", script], env={"SECRET": value, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == escape(value).rstrip("\n"), "a shell drops the newlines at the end of a value"


@given(st.text("$`\\a(){}'~*! ", max_size=30))
def test_the_shell_of_the_runtime_expands_nothing_in_a_proxy(value: str) -> None:
    """Apptainer evaluates APPTAINERENV_X as the text between double quotes, in which it escapes those of the value."""
    script = f'printf %s "{escape(value)}"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == value
