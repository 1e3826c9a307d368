"""The labels of an image, as the runtime merges them.

Source: Apptainer 1.4.5, internal/pkg/build/metadata.go.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from toolkit.definitions.parts import labels_of
from toolkit.support.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.definitions.parts import DefinitionParts

_HEADER = "org.label-schema.usage.singularity.deffile."
# What Go's encoding/json writes otherwise than Python's.
_ESCAPED = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def with_script_labels(present: str, of_scripts: str) -> str:
    """The text of `labels.json` with what scripts wrote to `$APPTAINER_LABELS`; `present` is the text that is there.

    Raises CheckFailed if `present` is no object of strings.
    """
    return _text({**_read(present), **labels_of(of_scripts)})


def merged_labels(present: str, parts: DefinitionParts, tool: tuple[str, str], architecture: str) -> str:
    """The text of `labels.json`.

    `present` is the text that is there, with the labels of scripts; `tool` is the runtime and its version,
    `architecture` Go's name. The labels of the definition replace none that is there already. Raises CheckFailed if
    `present` is no object of strings.
    """
    product, version = tool
    return _text(
        {
            **parts.labels,
            **_read(present),
            "org.label-schema.schema-version": "1.0",
            "org.label-schema.build-date": build_date(time.localtime()),
            f"org.label-schema.usage.{product}.version": version,
            **{f"{_HEADER}{key}": value for key, value in parts.header.items()},
            "org.label-schema.build-arch": architecture,
        }
    )


def build_date(when: time.struct_time) -> str:
    """The time of a build as the runtime writes it: `Sunday_22_November_2026_14:2:7_UTC`."""
    zone = when.tm_zone or "UTC"
    return f"{time.strftime('%A', when)}_{when.tm_mday}_{time.strftime('%B_%Y', when)}_" + (
        f"{when.tm_hour}:{when.tm_min}:{when.tm_sec}_{zone}"
    )


def _text(labels: Mapping[str, str]) -> str:
    return json.dumps(labels, indent="\t", sort_keys=True, ensure_ascii=False).translate(_ESCAPED)


def _read(text: str) -> dict[str, str]:
    try:
        labels = json.loads(text or "{}")
    except (ValueError, RecursionError):
        labels = None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise CheckFailed(
            "/.singularity.d/labels.json, as the base or a script of the build left it, is no object of strings",
            fix="Write labels to $APPTAINER_LABELS instead, as lines of NAME VALUE.",
            code="metadata-replaced",
        )
    return labels
