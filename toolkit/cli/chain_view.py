"""The chain of `ctk check-gpu` as users see it: link by link, the broken one in red with its remedy under it."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

from toolkit.cli.output import print_findings, say
from toolkit.gpu.chain import LinkState
from toolkit.gpu.nodes import node_row
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.findings import Severity

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.gpu.chain import Link
    from toolkit.gpu.check import Checked

_ANSWERS = {
    GpuVerdict.USED: ("The GPU is used: {frameworks} computed on it inside {image}.", "bold green"),
    GpuVerdict.VISIBLE: ("The GPU is visible from inside {image}.", "bold green"),
    GpuVerdict.CPU_FALLBACK: ("{frameworks} in {image} computes on the CPU.", "bold red"),
    GpuVerdict.NOT_VISIBLE: ("The GPU is not visible from inside {image}.", "bold red"),
    GpuVerdict.BROKEN: ("The GPU is visible from inside {image}, but {what} cannot be used.", "bold red"),
    GpuVerdict.NOT_KNOWN: ("Cannot determine whether the GPU is used inside {image}.", "bold yellow"),
    GpuVerdict.NO_GPU: ("This host has no GPU; {image} could not be checked.", "bold yellow"),
}
_HEADS = {
    LinkState.HOLDS: ("●", "green"),
    LinkState.BROKEN: ("✗", "bold red"),
    LinkState.UNCHECKED: ("○", "dim"),
    LinkState.UNREACHED: ("○", "dim"),
}
_TITLES = {"host": "host", "runtime": "runtime", "driver": "driver in the container"}


def show_checked(image: Path, found: Checked) -> None:
    """Every link with its findings, what is beside the chain, and the verdict in a sentence."""
    for link in found.chain.links:
        _show_link(link)
    print_findings(found.around)
    named = [link for link in found.chain.links if link.subject]
    if found.chain.verdict is not GpuVerdict.USED:
        named = [link for link in named if link.state is LinkState.BROKEN]
    frameworks = ", ".join(dict.fromkeys(link.subject or "" for link in named))
    what = frameworks or "one of the GPUs"
    words, style = _ANSWERS[found.chain.verdict]
    say(words.format(image=image, frameworks=frameworks, what=what), style=style)


def show_row(found: Checked) -> None:
    """The verdict of this node, and what decided it, in one line: steps on several nodes print between one another."""
    broken = (finding for link in found.chain.links if link.state is LinkState.BROKEN for finding in link.findings)
    reason = next((finding for finding in broken if finding.severity is not Severity.OK), None)
    # Slurm's name of the node may differ from the host's.
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    say(node_row(node, found.chain.verdict, reason))


def _show_link(link: Link) -> None:
    mark, style = _HEADS[link.state]
    title = _TITLES.get(link.name) or f"{link.name}{f' ({link.subject})' if link.subject else ''}"
    state = "" if link.state in (LinkState.HOLDS, LinkState.BROKEN) else f": {_why(link)}"
    if sys.stdout.isatty():
        if link.name != "host":
            say("│", style="dim" if link.state is LinkState.UNREACHED else "green")
        say(f"{mark} {title}{state}", style=style)
    else:
        say(f"{title}{state or ': broken' * (link.state is LinkState.BROKEN) or ': ok'}")
    print_findings(link.findings)


def _why(link: Link) -> str:
    if link.state is LinkState.UNREACHED:
        return "not reached"
    return "not checked" if link.subject else "no framework to check"
