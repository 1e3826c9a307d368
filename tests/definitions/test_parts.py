"""The parts of a definition, as the runtime reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.definitions.parts import labels_of, parts_of

TEXT = """# recipe x, written by ctk
# another comment
Bootstrap: localimage
From: ../my base.sif # a comment

%environment
    # Ignore
    export A=1

%post
    echo "%labels"

%labels
    ctk.recipe x
    # no label
    empty
    spaced   two  words

%post
    more
%environment
    export B=2
"""


def test_parts_are_those_that_the_runtime_reads() -> None:
    parts = parts_of(TEXT)
    assert parts.text == TEXT[TEXT.index("Bootstrap") :]
    assert parts.header == {"bootstrap": "localimage", "from": "../my base.sif"}
    # Sections of one name are joined, and an empty line at their end is kept.
    assert parts.environment == "    # Ignore\n    export A=1\n\n    export B=2\n"
    assert parts.labels == {"ctk.recipe": "x", "empty": "", "spaced": "two  words"}


def test_definition_without_sections_has_no_environment() -> None:
    parts = parts_of("bootstrap: docker\nfrom: debian:12\n")
    assert (parts.header, parts.environment, parts.labels) == ({"bootstrap": "docker", "from": "debian:12"}, "", {})


@given(st.dictionaries(st.from_regex(r"[a-z.]+", fullmatch=True), st.from_regex(r"(\w+( \w+)*)?", fullmatch=True)))
def test_labels_read_back_what_was_written(labels: dict[str, str]) -> None:
    assert labels_of("".join(f"  {name} {value}\n" for name, value in labels.items())) == labels
