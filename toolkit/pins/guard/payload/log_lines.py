"""The lines of the guard that ctk reads in a build's log (toolkit/pins/guard/log.py): one text for both sides."""

PREFIX = "ctk guard: "
# How the shell traces the end of `%post`: what comes after it is the guard's own summary.
END = "ctk_guard_end"
RUNNING = "running {command}"
IMPORTING = "importing {packages}"
IMPORTED = "imported {package} {version} in {seconds} s: {steps}"
IMPORT_FAILED = "IMPORT-FAILED {package} {version}: {step}: {error}"
IMPORTS_TOOK = "the import step took {seconds} s: {count}"
CONTRADICTION = "CONTRADICTION {difference}"
DIFFERENCE = "DIFFERENCE {difference}"
# Begins the reason of a difference that the installation of Debian packages made.
BY_APT = "by apt"
