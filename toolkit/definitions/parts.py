"""The parts of a definition that become metadata of the image, read as the runtime reads them.

Source: Apptainer 1.4.5, pkg/build/types/parser/deffile.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_START = re.compile(r"^bootstrap:", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DefinitionParts:
    """A definition of one stage. `text` is what the runtime keeps of it: no comments before its header.

    The keys of `header` are in lower case. `environment` is the section's text.
    """

    text: str
    header: Mapping[str, str]
    environment: str
    labels: Mapping[str, str]


def parts_of(definition: str) -> DefinitionParts:
    """The parts of a definition that ctk wrote: sections of other names are not read."""
    start = _START.search(definition)
    text = definition[start.start() :] if start else definition
    sections: dict[str, list[str]] = {"": []}
    section = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.lstrip().startswith("%"):
            section = line.strip().lstrip("%").lower().partition(" ")[0]
            sections.setdefault(section, [])
        else:
            sections[section].append(f"{line}\n")
    return DefinitionParts(
        text,
        header=_header(sections[""]),
        environment="".join(sections.get("environment", ())),
        labels=labels_of("".join(sections.get("labels", ()))),
    )


def labels_of(text: str) -> dict[str, str]:
    """Labels from lines `NAME VALUE`; a later one of a name wins."""
    words = (line.strip().partition(" ") for line in text.split("\n"))
    return {name: value.strip() for name, _, value in words if name and not name.startswith("#")}


def _header(lines: Iterable[str]) -> dict[str, str]:
    """`Key: value`, without comments."""
    words = (line.partition("#")[0].partition(":") for line in lines)
    return {key.strip().lower(): value.strip() for key, colon, value in words if colon}
