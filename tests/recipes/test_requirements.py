"""What somebody meant by a text that is no requirement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from toolkit.recipes.requirements import how_to_write

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pandas=2", "Write pandas==2.*: pip takes two equals signs."),
        ("pandas=2.0.3=py311h320fe9a_0", "Write pandas==2.0.3:"),
        ("pandas 2.0", "Write pandas==2.0:"),
        (
            "https://x.org/dl/my_pkg-1.0-py3-none-any.whl",
            "Write my-pkg @ https://x.org/dl/my_pkg-1.0-py3-none-any.whl:",
        ),
        ("https://x.org/My.Pkg-1.0.tar.gz", "Write my-pkg @ https://x.org/My.Pkg-1.0.tar.gz:"),
        ("https://x.org/latest.zip", "Write NAME @ https://x.org/latest.zip:"),
        ("https://github.com/NVIDIA/apex", "Write NAME @ git+https://github.com/NVIDIA/apex@COMMIT,"),
        (f"git+https://github.com/NVIDIA/apex@{COMMIT}", f"Write NAME @ git+https://github.com/NVIDIA/apex@{COMMIT},"),
        ("git+ssh://git@github.com/a/b", "Write NAME @ git+https://SERVER/PATH@COMMIT"),
        ("https://github.com/a/b/archive/main.zip", "Write NAME @ git+https://SERVER/PATH@COMMIT"),
        ("./dist/x-1-py3-none-any.whl", "[[files]]"),
        ("pandas>=2<3", "Write pandas>=2,<3: a comma is missing between two bounds."),
        ("pandas >= 2.0 < 3 != 2.5", "Write pandas>=2.0,<3,!=2.5: a comma is missing"),
        (
            "jax[cuda12]>=0.4,!=0.5<0.6; python_version < '4'",
            "Write jax[cuda12]>=0.4,!=0.5,<0.6 ; python_version < '4':",
        ),
        ("pandas>=2<", None),
        ("pandas==", None),
        ("", None),
    ],
)
def test_what_is_meant_is_said(text: str, words: str | None) -> None:
    said = how_to_write(text)
    assert said is None if words is None else (said or "").startswith(words) or words in (said or "")


@given(st.text() | st.from_regex(r"[a-z]{1,5}[=<> ]{1,2}[0-9.a-z=<>~,]{1,8}", fullmatch=True))
def test_what_is_proposed_is_a_requirement(text: str) -> None:
    said = how_to_write(text)
    if said is not None and ("==" in said or "comma" in said):
        Requirement(said.removeprefix("Write ").partition(": ")[0])
