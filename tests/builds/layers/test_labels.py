"""The labels of an image, as the runtime merges them."""

from __future__ import annotations

import json
import time

import pytest

from toolkit.builds.layers.labels import build_date, merged_labels, with_script_labels
from toolkit.definitions.parts import parts_of
from toolkit.support.errors import CheckFailed

PARTS = parts_of("Bootstrap: localimage\nFrom: base.sif\n\n%labels\n    name own\n    new <a & b>\n")


def merged(present: str, of_scripts: str = "") -> str:
    return merged_labels(with_script_labels(present, of_scripts), PARTS, ("apptainer", "1.4.5-1"), "arm64")


def test_labels_are_merged_as_by_the_runtime() -> None:
    text = merged('{"name": "of base", "kept": "é", "org.label-schema.build-arch": "amd64"}', "kept of script\nc d e\n")
    labels = json.loads(text)
    date = labels.pop("org.label-schema.build-date")
    assert date.rsplit("_", 1)[0] != ""
    assert labels == {
        "name": "of base",  # a definition replaces no label
        "new": "<a & b>",
        "kept": "of script",
        "c": "d e",
        "org.label-schema.build-arch": "arm64",
        "org.label-schema.schema-version": "1.0",
        "org.label-schema.usage.apptainer.version": "1.4.5-1",
        "org.label-schema.usage.singularity.deffile.bootstrap": "localimage",
        "org.label-schema.usage.singularity.deffile.from": "base.sif",
    }
    assert '\t"new": "\\u003ca \\u0026 b\\u003e"' in text  # as Go's encoding/json writes it
    assert list(labels) == sorted(labels)


@pytest.mark.parametrize("present", ["[]", "{", '{"a": 1}', '"text"'])
def test_labels_that_are_no_object_of_strings_end_the_build(present: str) -> None:
    with pytest.raises(CheckFailed, match=r"labels\.json"):
        merged(present)


def test_build_date_has_no_leading_zeros() -> None:
    assert build_date(time.gmtime(1_772_331_785)) == "Sunday_1_March_2026_2:23:5_GMT"
