"""Options of qsub as a user writes them: used in one line, or refused."""

from __future__ import annotations

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.jobs.dialects.qsub import encode_variables, inherited_variables, option, parse_option
from toolkit.jobs.model import Directive, Job
from toolkit.support.errors import WrongInput

OWN, RESOURCES = {"N": "use --job-name"}, {"walltime": "use --time"}


@given(st.text(alphabet="-lNm =a,:1#$'\"\\\n\té`", max_size=20) | st.text(max_size=20))
def test_option_is_one_line_that_ends_nowhere_else_or_is_refused(text: str) -> None:
    try:
        directive = parse_option(text, OWN, RESOURCES)
    except WrongInput:
        return
    line = option(directive)
    assert line.isascii()
    assert not set(line) & set("#$'\"\\`\n\t")
    assert line.split() == text.split()


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("-N x", "Instead: use --job-name."),
        ("-l walltime=1", "Instead: use --time."),
        ("-l mem=1,walltime=2", "Instead: use --time."),
        ("--x", "For example: --directive='-l gpu_type=a100' --directive='-r y'"),
        ("-l a=1 -o /tmp/x", "For example: --directive='-l gpu_type=a100' --directive='-r y'"),
    ],
)
def test_own_option_names_what_to_use_instead(text: str, fix: str) -> None:
    with pytest.raises(WrongInput) as caught:
        parse_option(text, OWN, RESOURCES)
    assert caught.value.fix == fix


def test_option_without_a_value() -> None:
    assert option(parse_option("-V", OWN, RESOURCES)) == "-V"
    assert option(Directive("l", "a=1")) == "-l a=1"


def test_variables_are_passed_on_by_name() -> None:
    job = Job("x", "./x.sif", ("true",), inherited=("A", "B"))
    assert inherited_variables(job) == ["-v A,B"]


# As they arrived with OpenPBS 23.06: `it is "q"` as `it is \q\`, `a\b` as `a\\b`, `end  ` as `end`; `it's` was refused.
@pytest.mark.parametrize("value", ['it is "q"', "a\\b", "end  ", "it's", "two\nlines", "ctk-base64:eA==", "é"])
def test_value_that_qsub_of_openpbs_changes_is_encoded(value: str) -> None:
    (encoded,) = encode_variables(["A", "MISSING"], {"A": value, "OTHER": value}).values()
    assert encoded.startswith("ctk-base64:")
    assert b64decode(encoded.removeprefix("ctk-base64:")).decode() == value


@pytest.mark.parametrize("value", ["", "hf_abcDEF123", "/scratch/me", "a=b", "1.5"])
def test_value_that_qsub_of_openpbs_leaves_is_given_as_it_is(value: str) -> None:
    assert encode_variables(["A"], {"A": value}) == {}
