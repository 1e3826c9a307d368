"""A program that a signal meets: what it does is its first argument, its second names the file for what it said.

Each line goes to standard output first and then to that file: what is there has to be in the job's log.
"""

import os
import signal
import sys
import time

behaviour, notes = sys.argv[1:]
rank = os.environ.get("SLURM_PROCID", "0")
record = os.open(f"{notes}-{rank}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP)
got = []


def tell(words):
    line = f"[{rank}] {words}\n"
    sys.stdout.write(line)  # neither flushed nor unbuffered by this program
    os.write(record, line.encode())


def child():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN if behaviour == "fork-ignore" else signal.SIG_DFL)
    time.sleep(600)
    os._exit(0)


for number in SIGNALS:
    signal.signal(number, signal.SIG_IGN if behaviour == "ignore" else lambda number, _: got.append(number))
if behaviour.startswith("fork") and os.fork() == 0:
    child()
tell("begun")
if os.environ.get("SLURM_RESTART_COUNT"):
    tell("again")
    sys.exit(0)
while not got:
    time.sleep(0.05)
tell(f"got {signal.Signals(got[0]).name}")
time.sleep({"late": 5}.get(behaviour, 0.5))
tell("saved")
sys.exit(3)
