"""Labels of ctk that a base brings along are seen, and the definition removes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolkit.definitions.definition import define
from toolkit.definitions.labels import has_labels_of_ctk
from toolkit.recipes.model import Base, Recipe


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (json.dumps({"ctk.recipe": "below", "maintainer": "ann"}), True),
        (json.dumps({"maintainer": "ctk.recipe", "ctkrecipe": "1"}), False),
        ("[]", False),
        ("{", False),
        pytest.param("[" * 100_000, False, id="deep"),
        (None, False),
    ],
)
def test_labels_of_ctk_in_a_base_on_this_machine(tmp_path: Path, text: str | None, answer: bool) -> None:
    (tmp_path / ".singularity.d").mkdir()
    if text is not None:
        (tmp_path / ".singularity.d/labels.json").write_text(text)
    assert has_labels_of_ctk(Base("b", "localimage", str(tmp_path))) is answer
    assert not has_labels_of_ctk(Base("b", "docker", str(tmp_path)))
    assert not has_labels_of_ctk(Base("b", "localimage", str(tmp_path / "none")))


def test_the_definition_removes_them_where_there_are_some_or_it_has_a_post_anyway() -> None:
    """A base without a shell can be given files and variables: without need there is no %post."""
    bare = Recipe("r", Path("r.toml"), Base("b", "localimage", "/b.sif"))
    posted = Recipe("r", Path("r.toml"), Base("b", "localimage", "/b.sif"), post="true")
    assert "%post" not in define(bare).text
    for text in (define(bare, relabel=True).text, define(posted).text):
        assert text.index("%post") < text.index("labels.json") < text.index("%labels")
