"""The document of `ctk check-gpu`, held against its schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gpu.links.seen import AMD, HOST, NO_HOST, probe, working
from tests.schemas import check_document
from toolkit.cli.documents.check_gpu import checked
from toolkit.gpu.chain import Subject, driver_links, whole_chain
from toolkit.gpu.check import Checked
from toolkit.gpu.framework_check import FrameworkCheck, Product
from toolkit.gpu.inside import Ending
from toolkit.gpu.links.model import Seen
from toolkit.gpu.probe import Device, Probe

if TYPE_CHECKING:
    from toolkit.gpu.host import HostGpu

CHECK = FrameworkCheck("torch", True, "2.5", 1, cpu_seconds=0.1, products=(Product(0, 0.1, 0.0, True, 0, 5),))
HANGING = FrameworkCheck("torch", False, ending=Ending(143, 5.0, "import", ("sleep",), ("a line",)))


@pytest.mark.parametrize("check", [CHECK, HANGING, FrameworkCheck("jax", True, failed="import", error="x")])
@pytest.mark.parametrize(
    ("host", "inside"),
    [
        (HOST, working()),
        (NO_HOST, Probe(None)),
        (HOST, probe(cuda_init=999)),
        (AMD, probe(devices=(Device("Instinct", None, 0),), hip_init=0, writable=True)),
    ],
)
def test_document_has_every_fact(check: FrameworkCheck, host: HostGpu, inside: Probe) -> None:
    seen = Seen(host, inside)
    chain = whole_chain(driver_links(seen, None), [Subject("torch", "PyTorch", check)])
    document = checked(Path("x.sif"), Checked(seen, (check,), chain, ()))
    findings = [finding.as_json() for finding in chain.findings]
    check_document(json.loads(json.dumps({"schema": "ctk.check-gpu/1", **document, "findings": findings})))
    assert [link["name"] for link in document["links"]] == ["host", "runtime", "driver", "framework", "capability"]
