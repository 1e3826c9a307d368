"""Request templates: what a site may write, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.requests import FIELDS, TEMPLATE_KEYS, RequestTemplate, parse_template, request_values
from toolkit.scheduler.resources import Resources
from toolkit.scheduler.values import Gpus
from toolkit.support.errors import WrongInput

VALUES = {"type": "a100", "count": "4", "nodes": "2"}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("--gres=gpu:{type}:{count}", "--gres=gpu:a100:4"),
        ("-l node_f={nodes}", "-l node_f=2"),
        ("-l select={nodes}:ngpus={count}", "-l select=2:ngpus=4"),
        ("-l rt_F=1", "-l rt_F=1"),
        ("-l a=1&b=!x|y", "-l a=1&b=!x|y"),
    ],
)
def test_template_is_filled(text: str, filled: str) -> None:
    assert parse_template(text, "x.toml: gpus").fill(VALUES) == filled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-l gpu={", "is not a request template"),
        ("-l gpu={gpus}", "unknown field {gpus}"),
        ("-l gpu={type.__class__}", "unknown field"),
        ("-l gpu={count!r}", "unknown field"),
        ("-l gpu={count:>9}", "unknown field"),
        ("-l gpu={}", "unknown field"),
        ("select={nodes}", "begin with a dash"),
        ("-l x=1\n#$ -o /x", "characters other than"),
        ("-l x='1'", "characters other than"),
        ("-l x=$(id)", "characters other than"),
        ("", "begin with a dash"),
    ],
)
def test_template_refused(text: str, said: str) -> None:
    with pytest.raises(WrongInput, match=r"x\.toml: gpus") as caught:
        parse_template(text, "x.toml: gpus")
    assert said in caught.value.message


def test_missing_value_names_the_option() -> None:
    with pytest.raises(WrongInput, match=r"needs a value for \{type\}") as caught:
        RequestTemplate("--gres=gpu:{type}:{count}").fill({"count": "1"})
    assert caught.value.fix == "Add --gpus TYPE:N."


@pytest.mark.parametrize(
    ("gpus", "cores", "each"), [(4, None, "4"), (4, 2, "2"), (4, 4, "1"), (4, 3, None), (2, 8, None)]
)
def test_gpus_of_each_slot_are_a_whole_number(gpus: int, cores: int | None, each: str | None) -> None:
    values = request_values(Resources(gpus=Gpus(gpus), cpus_per_task=cores))
    assert values.get("slot_gpus") == each
    if each is None:
        with pytest.raises(WrongInput) as caught:
            RequestTemplate("-l gpu={slot_gpus}").fill(values)
        assert "a multiple of the slots of a node" in (caught.value.fix or "")


def test_keys_of_a_profile() -> None:
    assert TEMPLATE_KEYS == ("resources", "cores", "gpus", "gpu_type", "memory", "time", "queue", "account", "qos")


@given(st.text(alphabet="-l {}=:countypeds!$'\"\\\n", max_size=30))
def test_what_is_accepted_stays_one_line_and_can_be_filled(text: str) -> None:
    try:
        template = parse_template(text, "x")
    except WrongInput:
        return
    filled = template.fill(dict.fromkeys(FIELDS, "1"))
    assert filled.startswith("-")
    assert not set(filled) & set("{}$'\"\\\n")
