"""The lines of the guard that ctk reads or writes in a build's log (toolkit/pins/guard/log.py): one text for both."""

import sys

PREFIX = "ctk guard: "
# How the shell traces the end of `%post`: what comes after it is the guard's own summary.
END = "ctk_guard_end"
RUNNING = "running {command}"
IMPORTING = "importing {packages}"
IMPORTED = "imported {package} {version} in {seconds} s: {steps}"
TRACED = "traced {package} {seconds} {trace}"
SEARCHED = "searched {directories}"
IMPORT_FAILED = "IMPORT-FAILED {package} {version}: {step}: {error}"
IMPORTS_TOOK = "the import step took {seconds} s: {count}"
CHECKING = "checking {command}"
CHECKED = "the check passed in {seconds} s"
CHECK_FAILED = "CHECK-FAILED {how}: {command}"
CONTRADICTION = "CONTRADICTION {difference}"
DIFFERENCE = "DIFFERENCE {difference}"
CHANGED_BASE = "the base differs from the locked one. `ctk lock` regenerates the lock."
CHANGED_FRAMEWORK = "the GPU framework would change, and the GPU might silently not be used: the build stops here."
OTHER_VERSIONS = "Request versions that fit the base (`ctk why PACKAGE`), or start from another base (`ctk bases`)."
OTHER_APT = "Remove the Debian package from `apt`, or start from another base (`ctk bases`)."
UNCHANGED = "the GPU framework is unchanged: {names}"
NOTE = "note: {what}"

# Begins the reason of a difference that the installation of Debian packages made.
BY_APT = "by apt"


def say(text, **values):
    """Print a line of the guard; `values` are the fields of one of the above."""
    sys.stderr.write(PREFIX + (text.format(**values) if values else text) + "\n")
    sys.stderr.flush()


def contradiction_lines(found):
    """What is said of a base that is not the one of the lock; nothing if it is."""
    return [CONTRADICTION.format(difference=line) for line in found] + ([CHANGED_BASE] if found else [])


def difference_lines(found, by_apt=False):
    """What is said of differences that fail a build, as `compare.compare` returns them; nothing of none."""
    lines = []
    for package, was, now, sentence in found:
        reason = BY_APT + ": " + sentence if by_apt else sentence
        lines.append(DIFFERENCE.format(difference=package + ": " + was + " -> " + now + " (" + reason + ")"))
    return lines + ([CHANGED_FRAMEWORK, OTHER_APT if by_apt else OTHER_VERSIONS] if found else [])
