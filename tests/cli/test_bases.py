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


def test_base_of_which_not_all_is_known_stands_apart_with_the_reason(ctk: Ctk) -> None:
    certain, _, possible = ctk("bases", "--framework", "tensorflow", "--gpu", "H100").stdout.partition(
        "possible base\t"
    )
    assert certain.splitlines()[1].startswith("tensorflow-2.15\t")
    assert "unknown" not in certain
    (line,) = (line for line in possible.splitlines() if line.startswith("tensorflow-2.10\t"))
    assert line.endswith("CUDA 11.2 is older than H100 (compute capability 9.0), and has only PTX for it")


def test_base_of_jax_is_one_with_its_wheels(ctk: Ctk) -> None:
    listed = ctk("bases", "--framework", "jax", "--gpu", "H100", "--driver", "580.65.06").stdout.splitlines()
    assert [line.partition("\t")[0].partition(",")[0] for line in listed[1:]] == [
        "python-3.12 with jax[cuda13]", "python-3.12 with jax[cuda12]",
    ]  # fmt: skip


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
