"""The supervisor of a lab: the parent of its daemons, and of orphaned processes of their jobs.

Slurm's steps detach from their parents, and so may processes of a job; without root there is no cgroup to find them.
Linux reparents every orphan to the supervisor (PR_SET_CHILD_SUBREAPER). It exits after its last child. All of them
inherit a resource limit from it, the lab's mark, by which they are found if it was killed.

A separate program with only the standard library, to stay small: `python -I -S supervisor.py MARK`. It reads one
order a line (JSON: argv, env, cwd, output), starts that program, and answers with its process number.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import subprocess
import sys

# resource(3py) has no name for it. Its unit is microseconds of CPU time of a real-time process without a system call.
# Neither Slurm (PropagateResourceLimits) nor container runtimes touch it, and a mark is thousands of years.
RLIMIT_RTTIME = 15  # asm-generic/resource.h

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def main() -> None:
    """Start the ordered programs until stdin is closed, then wait for all children."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed")
    mark, (_, highest) = int(sys.argv[1]), resource.getrlimit(RLIMIT_RTTIME)
    if highest == resource.RLIM_INFINITY:  # otherwise keep it: a lab may be started from a job of another lab
        resource.setrlimit(RLIMIT_RTTIME, (mark, highest))
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
        try:
            print(daemon.pid, flush=True)
        except BrokenPipeError:  # `ctk lab up` was interrupted; it finds the daemon as a child of this process
            break
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.close()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    os._exit(0)  # skip the warnings about open handles of the daemons


if __name__ == "__main__":
    main()
