"""Whether what was installed can be imported: each package that was asked for, and the frameworks, without a GPU."""

import concurrent.futures
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

import log_lines
from log_lines import say
from state import NOT_SHADOWS, is_importable, read_record
from traps import TRAPS

AT_ONCE = 8  # each of them may take a gigabyte of memory
SHOWN_LINES = 200
SHOWN_PATHS = 5
NOT_TRIED = set(NOT_SHADOWS) | {"benchmark", "benchmarks", "conftest", "example", "samples", "setup"}
TESTS = re.compile(r"(^|_)tests?(_|$)")
# What a library writes at import goes here and is deleted. The host's driver is not used.
CACHES = ("HOME", "HF_HOME", "KERAS_HOME", "MPLCONFIGDIR", "NUMBA_CACHE_DIR", "TMPDIR", "TORCH_HOME", "XDG_CACHE_HOME")
# An old framework needs the driver's library at import. Without a GPU there is no driver, so the import proves nothing.
NEEDS_DRIVER = re.compile(r"libcuda\.so\.1: cannot open shared object file")
TELLING = re.compile(r"\brequire[sd]?\b", re.IGNORECASE)


class Attempt:
    """The import of one distribution. `error` stays None if it succeeds; `step` is what failed."""

    def __init__(self, name, version, steps):
        self.name = name
        self.version = version
        self.steps = steps
        self.step = None
        self.error = None
        self.output = []
        self.seconds = 0.0
        self.trace = None

    @property
    def title(self):
        return self.name + " " + self.version


def try_imports(wanted, copies, directory, layered=False):
    """Import what is requested of the distributions `copies`, in parallel; whether all succeeded.

    What the imports write next to the code is removed. `layered`: they can write nothing, and ctk is told what they
    look for.
    """
    started = time.monotonic()
    sites = sorted({copy["site"] for copy in copies})
    skipped = [package["name"] for package in wanted["packages"] if package["name"] in wanted["skip"]]
    attempts = [attempt for attempt in plan(wanted, copies, sites) if attempt.name not in skipped]
    if skipped:
        say(log_lines.NOTE, what="not imported, because of [imports] skip in the recipe: " + ", ".join(skipped))
    if not attempts:
        return True
    say(log_lines.IMPORTING, packages=", ".join(attempt.title for attempt in attempts))
    before = set() if layered else files_in(sites)
    workers = max(1, min(AT_ONCE, len(os.sched_getaffinity(0)), len(attempts)))
    with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
        for attempt in pool.map(lambda job: run(job[1], job[0], wanted, directory, layered), enumerate(attempts)):
            tell(attempt)
    if not layered:
        remove(files_in(sites) - before)
    frameworks = {package["name"] for package in wanted["packages"] if package["framework"]}
    failed = []
    for attempt in attempts:
        if attempt.error and attempt.name in frameworks and any(NEEDS_DRIVER.search(line) for line in attempt.output):
            say(log_lines.NOTE, what=attempt.title + " needs a GPU driver to be imported, and was not checked")
        elif attempt.error:
            failed.append(attempt)
    count = str(len(attempts)) + " packages, " + str(len(failed)) + " failed"
    say(log_lines.IMPORTS_TOOK, seconds="%.1f" % (time.monotonic() - started), count=count)
    for attempt in failed:
        say(
            log_lines.IMPORT_FAILED,
            package=attempt.name,
            version=attempt.version,
            step=attempt.step,
            error=attempt.error,
        )
    if failed:
        say("an installed package cannot be imported: the build stops here. If it needs a GPU or a licence file to be")
        say("imported, use `ctk build --allow-import-failure NAME`, or `skip` in [imports] of the recipe.")
    return not failed


def plan(wanted, copies, sites):
    """What to import of each package that is there; one whose marker excludes it, or without a module, is not."""
    order = [os.path.realpath(path) for path in sys.path]
    for package in wanted["packages"]:
        found = [copy for copy in copies if copy["name"] == package["name"]]
        found.sort(key=lambda copy: order.index(copy["site"]) if copy["site"] in order else len(order))
        if not found:
            continue
        modules = modules_of(found[0], package["modules"])
        steps = ["import " + module for module in modules]
        for name in sorted(TRAPS):
            trap = TRAPS[name]
            there = [
                module for module in trap.beside + trap.without if any(is_importable(site, module) for site in sites)
            ]
            if trap.package == package["name"] and there == list(trap.beside):
                steps.append("trap " + name)
        if steps:
            yield Attempt(package["name"], found[0]["version"], steps)


def modules_of(copy, known):
    """What a program imports of a distribution: the names that are known, else all that it has at the top."""
    provided, inner = provided_by(copy)
    chosen = [module for module in known if module in provided or module in inner]
    return chosen or [module for module in provided if is_tried(module, copy["name"])]


def provided_by(copy):
    """The topmost packages and modules by the RECORD, and what lies within them; else by top_level.txt."""
    packages, modules, directories = set(), set(), set()
    for path, _ in read_record(copy["information"]) or []:
        parts = os.path.relpath(path, copy["site"]).split(os.sep)
        stem, dot, extension = parts[-1].partition(".")
        if parts[0] == ".." or not dot or not (extension == "py" or extension.endswith("so")):
            continue
        name = parts[:-1] if stem == "__init__" else parts[:-1] + [stem]
        if not name or not all(part.isidentifier() for part in name):
            continue
        if stem == "__init__":
            packages.add(".".join(name))
        elif len(name) == 1:
            modules.add(stem)
        else:
            directories.add(name[0])
    tops = {name for name in packages if not has_parent(name, packages)} | modules
    if not tops:
        # Not one `__init__.py`: a namespace with modules in it, or an editable installation.
        tops = directories or set(listed_in(copy))
    return sorted(tops), packages


def has_parent(name, packages):
    parts = name.split(".")
    return any(".".join(parts[:length]) in packages for length in range(1, len(parts)))


def listed_in(copy):
    path = os.path.join(copy["information"], "top_level.txt")
    if os.path.isfile(path):
        with open(path, errors="replace") as file:
            return [line.strip() for line in file if line.strip()]
    own = copy["name"].replace("-", "_")
    return [own] if is_importable(copy["site"], own) else []


def is_tried(module, distribution):
    """Private modules and tests are left out: users do not import them, and tests may need other packages."""
    parts = module.split(".")
    if module.lower().replace("_", "-").replace(".", "-") == distribution:
        return True
    return not (parts[0] in NOT_TRIED or TESTS.search(parts[0]) or any(part.startswith("_") for part in parts))


def run(attempt, number, wanted, directory, traced=False):
    """Import in a process of its own, under the time limit; its child processes are killed, too."""
    started = time.monotonic()
    home = os.path.join(directory, "import-" + str(number))
    os.mkdir(home)
    result, output = (
        os.path.join(directory, "import-%d.json" % number),
        os.path.join(directory, "import-%d.txt" % number),
    )
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "attempt.py")
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-s", "-B", script, result] + ["trace"][: int(traced)] + attempt.steps,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            cwd=home,
            env=environment_for(wanted["environment"], home),
            start_new_session=True,
        )
        try:
            status = process.wait(wanted["seconds"])
        except subprocess.TimeoutExpired:
            status = None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    with open(output, errors="replace") as file:
        attempt.output = file.read().splitlines()
    attempt.seconds = time.monotonic() - started
    judge(attempt, status, result, wanted["seconds"])
    return attempt


def judge(attempt, status, result, limit):
    """The result, or how the process ended if it wrote none."""
    said = {"step": attempt.steps[0], "error": None, "done": False}
    if os.path.isfile(result):
        with open(result) as file:
            said = json.load(file)
    if said["done"]:
        attempt.trace = said["trace"]
        return
    attempt.step = said["step"]
    if said["error"]:
        attempt.error = said["error"]
        if attempt.step.startswith("trap "):
            reasons = [line.strip() for line in attempt.output if TELLING.search(line)]
            attempt.error += " (" + reasons[-1][:300] + ")" if reasons else ""
    elif status is None:
        attempt.error = "timed out after " + str(limit) + " s"
    elif status < 0:
        attempt.error = "ended by " + signal_name(-status)
    else:
        attempt.error = "the import exited with status " + str(status)


def signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal " + str(number)


def environment_for(own, home):
    """The variables of the image and the recipe, without a GPU, and with caches that are removed."""
    environment = image_environment(own)
    environment.update(dict.fromkeys(CACHES, home))
    environment.update(CUDA_VISIBLE_DEVICES="", PYTHONDONTWRITEBYTECODE="1", PYTHONNOUSERSITE="1")
    return environment


def image_environment(own):
    """The variables of the image and the recipe, without what is meant for installers alone: credentials of a package
    index are in it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    environment.update({name: with_own_value(name, value, environment) for name, value in own.items()})
    return environment


def with_own_value(name, value, environment):
    """The value of a list of directories with that of the image where it refers to it: /opt/bin:$PATH."""
    parts = value.split(":")
    if "$" + name not in parts and "${" + name + "}" not in parts:
        return value
    own = environment.get(name, "")
    known = (own if part in ("$" + name, "${" + name + "}") else part for part in parts)
    return ":".join(part for part in known if part)


def files_in(sites):
    """Every file and directory in the site directories."""
    entries = (entry for site in sites for entry in os.walk(site))
    return {os.path.join(directory, name) for directory, directories, names in entries for name in directories + names}


def remove(paths):
    """Remove what imports wrote next to the code: the image must contain only what was installed."""
    if paths:
        some = ", ".join(sorted(paths)[:SHOWN_PATHS]) + (" and more" if len(paths) > SHOWN_PATHS else "")
        say(
            log_lines.NOTE,
            what="the imports wrote %d files and directories, which are removed: %s" % (len(paths), some),
        )
    for path in sorted(paths, reverse=True):  # a directory behind what is in it
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.remove(path)


def show(lines):
    """Print the last lines of a program's output so that none of them looks like one of the guard."""
    for line in lines[-SHOWN_LINES:]:
        sys.stderr.write("  | " + line + "\n")


def tell(attempt):
    show(attempt.output)
    seconds, steps = "%.1f" % attempt.seconds, ", ".join(attempt.steps)
    if attempt.error:
        say("could not import " + attempt.title + " in " + seconds + " s: " + steps)
    else:
        say(log_lines.IMPORTED, package=attempt.name, version=attempt.version, seconds=seconds, steps=steps)
        if attempt.trace:
            say(log_lines.TRACED, package=attempt.name, seconds=seconds, trace=json.dumps(attempt.trace))
