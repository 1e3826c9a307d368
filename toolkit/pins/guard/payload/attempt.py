"""One attempt in a process of its own: imports modules, then looks for known traps, and records its progress."""

import contextlib
import ctypes
import importlib
import json
import os
import signal
import sys
import traceback

LONGEST = 300  # characters of an exception's text


def main(arguments):
    """`arguments`: the file for the result, and the steps: `import MODULE`, `trap NAME`, or first `trace`."""
    result, steps = arguments[0], arguments[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    import traps

    traced = None
    if steps[0] == "trace":
        import tracing

        traced, steps = tracing.Trace(), steps[1:]
        sys.modules.pop("tracing")

    # The files of the guard must not shadow a package of the same name.
    sys.modules.pop("traps")
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    sys.argv = ["-c"]
    end_with_parent()
    if traced:
        traced.begin((here, os.getcwd()))
    for step in steps:
        write(result, {"step": step, "error": None, "done": False})
        try:
            problem = take(step, traps.TRAPS)
        except BaseException as error:  # SystemExit too: a module that ends the program cannot be imported
            traceback.print_exc()
            problem = words_of(error)
        if problem:
            write(result, {"step": step, "error": problem, "done": False})
            leave(1)
    write(result, {"step": None, "error": None, "done": True, "trace": traced and traced.found()})
    leave(0)


def take(step, known):
    """A problem that raises no exception; None if there is none."""
    kind, _, name = step.partition(" ")
    if kind == "trap":
        return known[name].problem()
    importlib.import_module(name)
    return None


def words_of(error):
    """The exception as the last line of a traceback, in one line: libraries begin their texts with blank ones."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else ""
    if text.endswith((":", "!")) and len(lines) > 1:
        text += " " + lines[1]
    name = type(error).__name__
    return (name + (": " + text if text else ""))[:LONGEST]


def write(path, result):
    # By rename: the other end must never read half of it.
    with open(path + ".new", "w") as file:
        json.dump(result, file)
    os.rename(path + ".new", path)


def leave(status):
    """Without what the package has for the interpreter's end: threads that wait, a crash in a destructor."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def end_with_parent():
    """A build that is interrupted leaves no import behind (PR_SET_PDEATHSIG, prctl(2))."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
