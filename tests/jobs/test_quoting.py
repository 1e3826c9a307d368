"""Words of a job script: each one stays a word."""

from __future__ import annotations

import os
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from tests.jobs.adversary import WORDS
from toolkit.jobs.quoting import quoted


@given(st.lists(WORDS, max_size=20))
def test_bash_reads_each_word_back(words: list[str]) -> None:
    script = "printf '%s\\0' " + " ".join(map(quoted, words))
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    assert [os.fsdecode(word) for word in done.stdout.split(b"\0")[:-1]] == (words or [""])
