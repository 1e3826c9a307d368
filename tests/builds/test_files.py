"""The files that a build writes, as a script writes them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from tests.examples import examples
from toolkit.builds.files import TextFile

if TYPE_CHECKING:
    import pytest


@examples(40)
@given(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60)
    | st.sampled_from(["CTK_END_OF_TEXT\n", "CTK_END_OF_TEXT \n", "", "a"])
)
@example("C\u0080")
@example("a\nCTKé\n")
def test_a_here_document_writes_the_text_as_it_is(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    directory = tmp_path_factory.mktemp("texts")
    for written in (text, f"{text}\n"):
        by_ctk, by_hand = TextFile(directory / "a", written), TextFile(directory / "it's b", written)
        by_ctk.run()
        subprocess.run(["sh"], input=by_hand.shell().encode(), check=True)
        assert by_hand.path.read_bytes() == by_ctk.path.read_bytes()
        assert by_hand.path.stat().st_mode == by_ctk.path.stat().st_mode
