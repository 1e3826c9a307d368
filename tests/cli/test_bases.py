"""`ctk bases` and its subcommands, as a user meets them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Ctk


def test_an_option_of_the_list_before_a_subcommand_is_refused(ctk: Ctk) -> None:
    done = ctk("bases", "--json", "check", status=2)
    assert "--json stands before the subcommand check" in done.stderr
    assert "bases" in json.loads(ctk("bases", "--json").stdout)
    assert "No such command" in ctk("bases", "chekc", status=2).stderr


def test_the_names_of_bases_are_completed(program: Ctk) -> None:
    words = {"COMP_WORDS": "ctk bases check pyt", "COMP_CWORD": "3"}
    assert "pytorch" in program(_CTK_COMPLETE="complete_bash", **words).stdout
