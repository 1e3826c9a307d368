"""The recipe's own check: a command that has to succeed in the finished image, without a GPU."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import log_lines
from attempt import end_with_parent
from imports import image_environment, show, signal_name
from log_lines import say


def check_passes(wanted, directory):
    """Whether the command of the recipe, if it has one, ends with status 0; what it prints is in the log.

    It runs in an empty directory, which is its home, too. What it starts is killed when it ends.
    """
    if "check" not in wanted:
        return True
    started = time.monotonic()
    command, words = wanted["check"]["command"], json.dumps(wanted["check"]["command"])
    home, output = os.path.join(directory, "check"), os.path.join(directory, "check.txt")
    os.mkdir(home)
    say(log_lines.CHECKING, command=words)
    with open(output, "wb") as file:
        problem = run(command, file, home, own_environment(wanted["environment"], home), wanted["check"]["seconds"])
    with open(output, errors="replace") as file:
        show(file.read().splitlines())
    if problem:
        say(log_lines.CHECK_FAILED, how=problem, command=words)
        return False
    say(log_lines.CHECKED, seconds="%.1f" % (time.monotonic() - started))
    return True


def own_environment(own, home):
    """The variables of the image and the recipe. Nothing hides a GPU or a directory with data from the command."""
    environment = image_environment(own)
    environment.setdefault("PYTHONUNBUFFERED", "1")  # what a killed command printed is shown, and errors in their place
    environment.update(HOME=home, TMPDIR=home, PYTHONDONTWRITEBYTECODE="1", PYTHONNOUSERSITE="1")
    return environment


def run(command, file, home, environment, limit):
    """How the command failed; None if it succeeded."""
    # A build that is interrupted ends this process with SIGTERM, and the command is in a session of its own.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=home,
            env=environment,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    except OSError as error:
        return "could not be started (" + os.strerror(error.errno) + ")"
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        return "timed out after " + str(limit) + " s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if status < 0:
        return "was ended by " + signal_name(-status)
    return "exited with status " + str(status) if status else None
