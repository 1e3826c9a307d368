"""Shell scripts of an image, read without running them."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.inventory.contents.test_interpreters import PIECES
from tests.inventory.making import variables_after
from toolkit.inventory.contents.shell import parse_script


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('export A="b"', "b"), ("export A=b", "b"), ("A=b; export A", "b"), ("export A='b $C'", "b $C"),
        ('export A="${A:-"b"}"', "b"), ("export A=$P:b", "p:b"), ("export A=${P}:b", "p:b"), ("export A=b # why", "b"),
        ('export A="b\\"c"', 'b"c'), ("if true; then A=b", "b"), ("A=", ""),
        ("export A=b${N:+:${N}}", "b"), ("export A=b${P:+:${P}}", "b:p"), ("A=${N-b}", "b"), ("A=${P+b}", "b"),
        ("export B=1 A=b", "b"), ("export B=1; export A=b", "b"), ("A=\\\nb", "b"), ("echo A=b", ""), ("A=b#c", "b#c"),
        ("[ -d /x ] && export A=b", "b"), ('A="a b"c\\ d', "a bc d"), ("A=${P", ""),
    ],
)  # fmt: skip
def test_what_a_script_assigns(script: str, expected: str) -> None:
    assert variables_after("P=p", script).get("A", "") == expected


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(["A=", "export B=1 A=", "B=x; export A="]))
def test_a_value_is_what_a_shell_makes_of_it(pieces: list[str], before: str) -> None:
    script = before + "".join(pieces)
    variables = variables_after("P=p", script)
    shown = subprocess.run(["sh", "-c", f'P=p\n{script}\nprintf %s "$A"'], capture_output=True, text=True, check=True)
    assert variables["A"] == shown.stdout


@given(
    st.lists(
        st.sampled_from(
            [
                *"\n;&|(){}'\"`$#\\",
                "if ",
                "then ",
                "fi ",
                "case ",
                "esac ",
                "for ",
                "do ",
                "done ",
                "a ",
                "$(",
                "${",
                "A=",
                "&&",
            ]
        )
    )
)
def test_any_script_ends(pieces: list[str]) -> None:
    parse_script("".join(pieces))
    variables_after("".join(pieces))


def test_scripts_that_never_end_do() -> None:
    variables_after("f() { f; f; }; f")
    variables_after("a && " * 5000 + "A=1")
    variables_after("{ " * 5000)
    variables_after("if " * 5000)
    variables_after("$(" * 5000)
    variables_after("A=x\n" + "A=$A$A\n" * 100)
