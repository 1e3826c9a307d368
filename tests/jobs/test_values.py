"""What may be written for a job besides its resources, and what is refused."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.jobs import values
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.model import Directive
from toolkit.jobs.variables import parse_environment
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable


@given(st.text())
def test_any_file_s_name_gives_a_job_s_name(text: str) -> None:
    assert values.check_name(values.name_for(text))


def test_a_name_that_is_good_stays() -> None:
    names = ("keras-bert.v1_2", "my image", ".hidden", "日本", "a" * 200)
    assert [values.name_for(name) for name in names] == ["keras-bert.v1_2", "my-image", "hidden", "job", "a" * 128]


REFUSED: list[tuple[Callable[[str], object], str, str]] = [
    *[
        (values.check_name, "--job-name", bad)
        for bad in (
            "",
            "a/b",
            "../up",
            "a\nb",
            "a b",
            "$(id)",
            "`id`",
            "日本",
            "%j",
            "-x",
            ".x",
            "a" * 129,
            "x\n",
            "a'b",
        )
    ],
    *[
        (values.check_bind, "--bind", bad)
        for bad in ("", "/a,/b", "/a:b", "/a:/b:rx", "/a:/b:ro:x", "-x", ":/b", "/a\n", "/a\x1b[0m")
    ],
    *[(parse_environment, "--env", bad) for bad in ("PATH", "=1", "1X=2", "A-B=1", "X=a\nb", "")],
    *[
        (SLURM.parse_directive, "--directive", bad)
        for bad in (
            *("", "exclusive", "-p gpu", "--", "---x", "--X=1", "--a b", "--comment=", "--comment=é"),
            *('--comment="x"', "--comment='", "--comment=\\", "--comment=a\n#SBATCH --x", "--mem=1G", "--output=x"),
            *("--out=x", "--o=x", "--err=x", "--chdir=/x", "--time=1", "--ntasks=4", "--job=x", "--wrap=id"),
            *("--signal=ALRM@60", "--signal=QUIT", "--signal=10@30", "--signal=STOP@20", "--signal", "--signal=B:@5"),
        )
    ],
]


@pytest.mark.parametrize(("check", "option", "written"), REFUSED)
def test_what_cannot_be_used_is_refused_by_the_name_of_its_option(
    check: Callable[[str], object], option: str, written: str
) -> None:
    with pytest.raises(WrongInput) as refusal:
        check(written)
    assert option in refusal.value.message
    assert "\n" not in refusal.value.message


def test_a_directive_says_which_option_to_use_instead() -> None:
    with pytest.raises(WrongInput) as refusal:
        SLURM.parse_directive("--tim=5")
    assert refusal.value.fix == "Instead: use --time."


@pytest.mark.parametrize(
    ("written", "directive"),
    [
        ("--exclusive", Directive("exclusive")),
        ("--constraint=[rack1|rack2]", Directive("constraint", "[rack1|rack2]")),
        ("--mem-per-cpu=2G", Directive("mem-per-cpu", "2G")),
        ("--comment=two words # three", Directive("comment", "two words # three")),
        ("--time-min=10", Directive("time-min", "10")),
    ],
)
def test_any_other_directive_passes(written: str, directive: Directive) -> None:
    assert SLURM.parse_directive(written) == directive


@pytest.mark.parametrize(
    ("written", "asks"),
    {
        "--gres=gpu:1": True,
        "--gres=gpu": True,
        "--gres=craynetwork:1,gpu:tesla:2": True,
        "--gres=craynetwork:1": False,
        "--gpus-per-node=2": True,
        "--exclusive": False,
    }.items(),
)
def test_a_site_may_have_its_own_way_to_ask_for_gpus(written: str, asks: bool) -> None:
    assert SLURM.parse_directive(written).asks_for_gpus is asks


@given(st.text())
def test_a_value_is_used_or_refused_and_never_crashes(text: str) -> None:
    for check in (*(values.check_name, values.check_bind, SLURM.parse_directive, parse_environment),):
        with contextlib.suppress(WrongInput):
            check(text)  # type: ignore[operator]
