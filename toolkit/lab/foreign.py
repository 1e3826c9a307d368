"""Whether this machine is part of a real cluster: a scheduler's configuration shows it, its programs do not.

machine/foreign-cluster checks the same without Python.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from pathlib import Path

from toolkit.lab.configuration import CLUSTER_PREFIX
from toolkit.scheduler.environment import clean_environment
from toolkit.support.errors import ProgramFailed
from toolkit.support.processes import run
from toolkit.support.text import shorten

_SLURM = ("/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf", "/run/slurm/conf/slurm.conf")
_GRID_ENGINE = "/var/lib/gridengine/default/common/act_qmaster"
_TORQUE = ("/etc/torque/server_name", "/var/spool/torque/server_name")
_TIMEOUT = 5.0  # seconds; a client without a configuration looks for one in the DNS, which may be slow


def foreign_cluster() -> str | None:
    """One line about the cluster that this machine belongs to; None if there is none. Labs of ctk are ignored."""
    return _slurm() or _grid_engine() or _pbs()


def _slurm() -> str | None:
    named = os.environ.get("SLURM_CONF")
    for path in ([named] if named else []) + list(_SLURM):
        text = _text(path)
        if text is not None and (name := cluster_name(text)) is not None:
            return f'Slurm cluster "{name}" ({path})'
    if named or shutil.which("scontrol") is None:
        return None
    # A Slurm from another source has its configuration elsewhere, or fetches it: ask its own client.
    try:
        done = run(["scontrol", "show", "config"], env=clean_environment(), timeout=_TIMEOUT)
    except ProgramFailed:
        return None
    name = cluster_name(done.stdout) if done.ok else None
    return None if name is None else f'Slurm cluster "{name}" (scontrol show config)'


def cluster_name(configuration: str) -> str | None:
    """The ClusterName of a slurm.conf, or of `scontrol show config`; None for a practice cluster.

    A configuration without a name is also a cluster, "unnamed".
    """
    match = re.search(r"^\s*ClusterName\s*=\s*([^\s#]+)", configuration, re.IGNORECASE | re.MULTILINE)
    name = match[1] if match else "unnamed"
    return None if name.startswith(CLUSTER_PREFIX) else shorten(name)


def _grid_engine() -> str | None:
    root = os.environ.get("SGE_ROOT")
    cell = os.environ.get("SGE_CELL", "default")
    for path in ([f"{root}/{cell}/common/act_qmaster"] if root else []) + [_GRID_ENGINE]:
        text = _text(path)
        # Debian's package writes an empty line until somebody names a master.
        if text is not None and text.strip() not in ("", "localhost", platform.node()):
            return f"Grid Engine ({path})"
    return None


def _pbs() -> str | None:
    path = os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf")
    if re.search(r"^PBS_SERVER=", _text(path) or "", re.MULTILINE):
        return f"PBS ({path})"
    return next((f"Torque ({path})" for path in _TORQUE if _text(path) is not None), None)


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return None
