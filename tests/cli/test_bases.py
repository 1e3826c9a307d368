"""`ctk bases` and its subcommands, as a user meets them."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from tests.cli.conftest import PROGRAM

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


def test_the_list_of_bases_loads_no_module_that_it_does_not_need() -> None:
    """It answers in under 0.2 s: nobody waits for it. benchmarks/RESULTS.md has the times."""
    heavy = {"rich", "hashlib", "tempfile", "packaging.requirements", "toolkit.recipes.load", "toolkit.gpu.rules"}
    # Measuring the coverage of a process loads modules before ctk does.
    script = "import sys; sys.argv = ['ctk', 'bases', '--gpu', 'V100']; before = set(sys.modules)\n"
    script += "from toolkit.cli.main import main\n"
    script += f"try: main()\nfinally: print(sorted({heavy!r} & set(sys.modules) - before))"
    python = PROGRAM.with_name("python")
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
