"""The programs: the first word says which one runs."""

from __future__ import annotations

import sys

from tests.emulated_pbs import mom, server
from tests.emulated_pbs.qsub import qsub
from tests.emulated_pbs.status import pbsnodes, qdel, qstat

if __name__ == "__main__":
    program, *arguments = sys.argv[1:]
    (server.place() / "jobs").mkdir(parents=True, exist_ok=True)
    if program == "mom":
        sys.exit(mom.run_job(arguments[0]))
    sys.exit({"qsub": qsub, "qstat": qstat, "qdel": qdel, "pbsnodes": pbsnodes}[program](arguments))
