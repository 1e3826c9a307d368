"""What a profile fills in: only what its templates name, and only where there is one answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scheduler.profiles import TWO_PARTITIONS
from toolkit.scheduler.completion import complete_resources, named_fields
from toolkit.scheduler.requests import RequestTemplate, RequestTemplates
from toolkit.scheduler.resources import Resources
from toolkit.scheduler.values import Gpus


def completed(template: str | None, **resources: Any) -> dict[str, Any]:
    requests = RequestTemplates(resources=RequestTemplate(template)) if template else RequestTemplates()
    return complete_resources(TWO_PARTITIONS, Resources(**resources), requests)


def test_named_fields_are_those_of_every_template() -> None:
    requests = RequestTemplates(
        gpus=RequestTemplate("-l gpu={count}"), arguments=(RequestTemplate("-g {account}"), RequestTemplate("-x {qos}"))
    )
    assert named_fields(requests) == {"count", "account", "qos"}


@pytest.mark.parametrize(
    ("template", "resources", "expected"),
    [
        (None, {"gpus": Gpus(8)}, {}),
        ("-l {queue}={nodes}", {}, {"partition": "debug"}),
        ("-l {queue}={nodes}", {"partition": "gpu"}, {}),
        ("-l {queue}={nodes}", {"partition": "gpu", "gpus": Gpus(9)}, {"nodes": 3}),
        ("-l {queue}={nodes}", {"partition": "gpu", "gpus": Gpus(9), "nodes": 4}, {}),
        ("-l gpu={count}", {"partition": "gpu", "gpus": Gpus(9)}, {"nodes": 3}),
        ("--gres={type}:1", {"gpus": Gpus(1)}, {"gpus": Gpus(1, "v100")}),
        ("--gres={type}:1", {"gpus": Gpus(1, "a100")}, {}),
        ("--gres={type}:1", {"gpus": Gpus(1), "partition": "other"}, {}),
        ("-l h={time}", {"partition": "gpu"}, {"time": 3600}),
        ("-l h={seconds}", {"partition": "gpu", "time": 60}, {}),
        ("-l h={time}", {}, {}),
    ],
)
def test_only_what_is_named_missing_and_certain_is_filled(
    template: str | None, resources: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert completed(template, **resources) == expected
