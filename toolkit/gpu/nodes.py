"""`ctk check-gpu` on several nodes at once: one row a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.gpu.verdicts import GpuVerdict
    from toolkit.support.findings import Finding


def is_on_several_nodes(environment: Mapping[str, str]) -> bool:
    """Whether this process is one of a Slurm step (`srun`) on more than one node. Source: srun(1)."""
    number = environment.get("SLURM_STEP_NUM_NODES", "")
    return number.isdecimal() and int(number) > 1


def node_row(hostname: str, verdict: GpuVerdict, finding: Finding | None) -> str:
    """One line for a node: its name, the verdict, and the finding that decided it, in one line whatever it holds."""
    reason = " ".join([*finding.message.split(), f"[{finding.code}]"]) if finding else ""
    return ": ".join(filter(None, (hostname, verdict.value, reason)))
