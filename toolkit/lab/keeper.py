"""The keeper of a lab: the parent of its daemons, and of whatever their jobs leave behind.

Slurm's steps leave their parents, and what a job starts may do so, too; without root there is no cgroup to find them
by. Below a keeper nobody gets lost: Linux hands it every orphan (PR_SET_CHILD_SUBREAPER). It ends with its last child.

A program of its own, with the standard library alone, to stay small: `python -I -S keeper.py`. It reads one order a
line (JSON: argv, env, cwd, output), starts that program, and answers with its process number.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def main() -> None:
    """Start what is ordered until the orders end, then keep the orphans until the last one is gone."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed")
    daemons = []
    for line in sys.stdin:
        order = json.loads(line)
        with open(order["output"], "wb") as output:
            daemon = subprocess.Popen(
                order["argv"],
                env=order["env"],
                cwd=order["cwd"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        daemons.append(daemon)
        print(daemon.pid, flush=True)
    sys.stdout.close()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    os._exit(0)  # the daemons' handles would only complain


if __name__ == "__main__":
    main()
