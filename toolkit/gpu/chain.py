"""The chain from the host's GPU to the framework's arithmetic: its links in order, up to the one that breaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.gpu.links.capability import CODES, judge_capability
from toolkit.gpu.links.driver import judge_driver
from toolkit.gpu.links.framework import judge_framework
from toolkit.gpu.links.host import judge_host
from toolkit.gpu.links.model import Judged, Seen
from toolkit.gpu.links.runtime import judge_runtime
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.enums import StrEnum
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.gpu.audit import Audit, FrameworkAudit
    from toolkit.gpu.framework_check import FrameworkCheck
    from toolkit.support.findings import Finding

_WORST_FIRST = (GpuVerdict.BROKEN, GpuVerdict.CPU_FALLBACK, GpuVerdict.NOT_KNOWN, GpuVerdict.USED)
# What the audit found in the image that explains an answer of the driver.
_EXPLAINING = frozenset({"stub-libcuda-first", "compat-libcuda-first", "gpu-hidden-by-environment"})


class LinkState(StrEnum):
    """UNCHECKED: nothing was asked of it. UNREACHED: the chain broke before it."""

    HOLDS = "holds"
    BROKEN = "broken"
    UNCHECKED = "unchecked"
    UNREACHED = "unreached"


@dataclass(frozen=True, slots=True)
class Link:
    """One link: host, runtime, driver, framework or capability; the last two for each framework (`subject`)."""

    name: str
    state: LinkState
    findings: tuple[Finding, ...] = ()
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Chain:
    """All links and the verdict."""

    verdict: GpuVerdict
    links: tuple[Link, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of all links, in their order, each once."""
        return tuple(dict.fromkeys(finding for link in self.links for finding in link.findings))


@dataclass(frozen=True, slots=True)
class Subject:
    """A framework of the chain: its name and title, its check if it was run, and what the audit found of it.

    `visible` is how many GPUs the driver shows.
    """

    name: str
    title: str
    check: FrameworkCheck | None = None
    audit: FrameworkAudit | None = None
    visible: int | None = None


def driver_links(seen: Seen, audit: Audit | None) -> Chain:
    """The first three links. If they hold, the verdict is that the GPU is visible."""
    links = []
    for name, rule in (("host", judge_host), ("runtime", judge_runtime), ("driver", judge_driver)):
        judged = rule(seen)
        if judged.verdict is not None:
            explained = Judged((*judged.findings, *_explaining(audit)), judged.verdict) if name == "driver" else judged
            links.append(_link(name, explained))
            rest = ("host", "runtime", "driver", "framework", "capability")[len(links) :]
            unreached = (Link(name, LinkState.UNREACHED) for name in rest)
            return Chain(judged.verdict, (*links, *unreached))
        links.append(_link(name, judged))
    return Chain(GpuVerdict.VISIBLE, tuple(links))


def whole_chain(begun: Chain, subjects: Sequence[Subject]) -> Chain:
    """The chain with the links of each framework, where the first three hold."""
    if begun.verdict is not GpuVerdict.VISIBLE:
        return begun
    if not subjects:
        nothing = (Link(name, LinkState.UNCHECKED) for name in ("framework", "capability"))
        return Chain(begun.verdict, (*begun.links, *nothing))
    verdicts, links = [], list(begun.links)
    for subject in subjects:
        verdict, own = _framework_links(subject)
        verdicts.append(verdict)
        links += own
    worst = next((verdict for verdict in _WORST_FIRST if verdict in verdicts), GpuVerdict.VISIBLE)
    return Chain(worst, tuple(links))


def _framework_links(subject: Subject) -> tuple[GpuVerdict, list[Link]]:
    audited = subject.audit.findings if subject.audit else ()
    own = [finding for finding in audited if finding.code not in CODES]
    expected = [finding for finding in audited if finding.code in CODES]
    if subject.check is None:
        unchecked = Link("framework", LinkState.UNCHECKED, (), subject.title)
        judged = judge_capability(subject.title, None, expected)
        return judged.verdict or GpuVerdict.VISIBLE, [unchecked, _link("capability", judged, subject.title)]
    framework = judge_framework(subject.title, subject.check, own, unfit=_has_error(expected), visible=subject.visible)
    first = _link("framework", framework, subject.title)
    if framework.verdict is not None:
        return framework.verdict, [first, Link("capability", LinkState.UNREACHED, (), subject.title)]
    judged = judge_capability(subject.title, subject.check, expected)
    return judged.verdict or GpuVerdict.USED, [first, _link("capability", judged, subject.title)]


def _has_error(findings: Sequence[Finding]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)


def _link(name: str, judged: Judged, subject: str | None = None) -> Link:
    state = LinkState.BROKEN if judged.verdict is not None else LinkState.HOLDS
    return Link(name, state, judged.findings, subject)


def _explaining(audit: Audit | None) -> tuple[Finding, ...]:
    return tuple(finding for finding in audit.findings if finding.code in _EXPLAINING) if audit else ()
