"""The document of `ctk check-gpu --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.gpu.chain import Link
    from toolkit.gpu.check import Checked
    from toolkit.gpu.framework_check import FrameworkCheck
    from toolkit.gpu.host import HostGpu
    from toolkit.gpu.inside import Ending
    from toolkit.gpu.probe import Probe


def checked(image: Path, found: Checked) -> dict[str, Any]:
    """The verdict, the links, and the facts that they were judged by."""
    return {
        "verdict": found.chain.verdict,
        "image": str(image),
        "links": [_link(link) for link in found.chain.links],
        "host": _host(found.seen.host),
        "inside": _inside(found.seen.probe),
        "checks": [_check(check) for check in found.checks],
    }


def _link(link: Link) -> dict[str, Any]:
    codes = list(dict.fromkeys(finding.code for finding in link.findings))
    return {"name": link.name, "framework": link.subject, "state": link.state, "findings": codes}


def _host(host: HostGpu) -> dict[str, Any]:
    return {"vendor": host.vendor, "driver": host.driver, "devices": list(host.devices)}


def _inside(probe: Probe) -> dict[str, Any]:
    facts = asdict(probe)
    devices = [
        {
            "name": gpu.name,
            "capability": list(gpu.capability) if gpu.capability else None,
            "memory_bytes": gpu.memory or None,
            "uuid": gpu.uuid,
            "context": gpu.context,
        }
        for gpu in probe.devices
    ]
    return {
        **facts,
        "devices": devices,
        "ending": _ending(probe.ending),
    }


def _check(check: FrameworkCheck) -> dict[str, Any]:
    return {**asdict(check), "ending": _ending(check.ending)}


def _ending(ending: Ending) -> dict[str, Any]:
    return {**asdict(ending), "signal": ending.signal}
