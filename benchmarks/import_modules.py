"""Runs inside an environment: import modules, run statements, say what failed. Input and output are JSON."""

import importlib
import json
import os
import sys
import traceback

_TEXT_LIMIT = 300


def main():
    """Read a request from stdin; write the first failure, or {}, as the last line of stdout."""
    request = json.loads(sys.stdin.read())
    del sys.path[0]  # this script's own directory
    answer = {}
    try:
        for module in request["modules"]:
            importlib.import_module(module)
        for statement in request["statements"]:
            exec(statement, {})  # noqa: S102 - from importable.toml
    except BaseException as error:
        answer = failure(error)
    # Libraries print at exit, and some abort there: the answer comes first.
    print("\n" + json.dumps(answer), flush=True)
    os._exit(0)


def failure(error):
    """What the exception was raised from, all texts behind it, and the files of its frames, the deepest first."""
    files = []
    texts = []
    seen = set()
    raised = error
    while raised is not None and id(raised) not in seen:
        seen.add(id(raised))
        frames = traceback.extract_tb(raised.__traceback__)
        files = [frame.filename for frame in reversed(frames)] + files
        if isinstance(raised, SyntaxError) and raised.filename:
            files.insert(0, raised.filename)
        texts.append(last_line(raised))
        raised = raised.__cause__ or raised.__context__
    files = list(dict.fromkeys(name for name in files if not name.startswith("<")))
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    return {"error": last_line(root), "texts": texts, "files": files}


def last_line(error):
    """`ImportError: cannot import name …`, on one line."""
    text = str(error).replace(sys.prefix + "/", "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (type(error).__name__ + (": " + " ".join(lines) if lines else ""))[:_TEXT_LIMIT]


if __name__ == "__main__":
    main()
