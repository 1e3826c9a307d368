"""Runs after a framework's check in the gate of a job: says in one line whether the framework computed on the GPU.

It is sent after the texts of the harness and of the check, to Python 3.5 or newer. Limits and codes are those of
toolkit/gpu/links/capability.py.
"""

import io
import json
import os
import sys

TOLERANCE = 0.01
GROWN = 8 << 20
OUTPUT = sys.stdout
steps = 1000


def judged(title, facts):
    """The answer: `computed COUNT WORDS`, or `fails CODE WORDS`."""
    if facts["failed"] == "import":
        return "fails framework-import-fails %s cannot be imported: %s" % (title, facts["error"])
    name = "%s %s" % (title, facts["version"])
    if facts["failed"] == "devices" or not facts["count"]:
        reason = facts["error"] or facts["reason"] or "it names no reason"
        return "fails framework-sees-no-gpu %s sees no GPU, though the driver shows one: %s" % (name, reason)
    if facts["failed"]:
        return "fails framework-compute-fails %s cannot compute on the CPU: %s" % (name, facts["error"])
    for product in facts["products"]:
        problem = wrong(product)
        if problem:
            return "fails %s %s on GPU %d: %s" % (problem[0], name, product["index"], problem[1])
    plural = "" if facts["count"] == 1 else "s"
    return "computed %d %s computed on %d GPU%s" % (facts["count"], name, facts["count"], plural)


def wrong(product):
    """What is wrong with a product on a GPU: the code and the words; None if nothing is."""
    if product.get("error"):
        return "framework-compute-fails", product["error"]
    if not product["difference"] <= TOLERANCE:
        return "wrong-result", "its product of two matrices differs from the CPU's"
    place, before, after = product["place"], product["used_before"], product["used_after"]
    if place and place["answer"] in (0, 1):
        proved = place["on_device"]
    else:
        proved = max(late - early for early, late in zip(before, after)) >= GROWN if before and after else None
    return ("result-not-on-gpu", "the result is not in the memory of a GPU") if proved is False else None


def step(name):
    """In the place of the harness's own: the gate gives each step its time. To import may take as long as a start."""
    global steps
    steps += 1
    kind = "start" if name == "import" else "call"
    OUTPUT.write("\nctk-stage: %d %s %s\n" % (steps, kind, name))
    OUTPUT.flush()


def run_gate(main, mark, check, title):
    if len(sys.argv) > 1 and sys.argv[1]:  # the gate has chosen these, since nobody says which are the job's
        os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]
    said, sys.stdout = sys.stdout, io.StringIO()
    main(check)
    text, sys.stdout = sys.stdout.getvalue(), said
    words = judged(title, json.loads(text.rpartition(mark)[2]))
    sys.stdout.write("\nctk-gate: " + " ".join(words.split()) + "\n")
    sys.stdout.flush()
    os._exit(0)  # not through the ends of the framework's threads
