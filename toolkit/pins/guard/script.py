"""Lock and guard as shell text for `%post`: the definition contains them and does not need ctk."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.pins.guard.payload.log_lines import END
from toolkit.pins.guard.trials import CHECK_TIME_LIMIT, ImportStep, import_step
from toolkit.pins.lock.document import lock_document
from toolkit.support.text import part_braces

if TYPE_CHECKING:
    from toolkit.pins.lock.model import Lock

# Where ctk binds a directory with uv's program; /mnt is in every image, and a bind onto what is not there ends a build.
UV_MOUNT = "/mnt"
# In an image the system's Python is the user's Python: PEP 668 protects nothing there, and root is the only user.
PIP_SETTINGS = {
    "PIP_BREAK_SYSTEM_PACKAGES": "1",
    "PIP_ROOT_USER_ACTION": "ignore",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
# Sets the constraint file of the guard, in addition to one that the base ships.
_CONSTRAINED = (
    'export PIP_CONSTRAINT="${PIP_CONSTRAINT:+$PIP_CONSTRAINT }$ctk_guard/constraint.txt"',
    'export UV_CONSTRAINT="${UV_CONSTRAINT:+$UV_CONSTRAINT }$ctk_guard/constraint.txt"',
    "export " + " ".join(f"{name}={value}" for name, value in PIP_SETTINGS.items()),
)
END_OF_FILE = "CTK_END_OF_FILE"
# The first line that the script of a layer prints.
LAYER_BEGINS = "ctk layer:"
_LARGEST_PART = 16 << 10  # bytes
# Those that decide how packages are imported.
IMPORTING_FILES = ("tracing.py", "attempt.py", "imports.py", "traps.py", "state.py")
_PAYLOAD = Path(__file__).with_name("payload")
_FILES = (
    *("log_lines.py", "state.py", "compare.py", "debian.py", "install.py"),
    *("traps.py", "attempt.py", "imports.py", "check.py", "guard.py"),
)


def guard_before(lock: Lock, wanted: ImportStep | None = None, apt: str = "") -> str:
    """Records the state of the base before anything is installed, and makes sure that the end of `%post` is checked.

    Fails the build where the base is not the one that was locked, or where `apt`, the script that installs Debian
    packages, changes what the base protects. From then on pip and uv are under a constraint file, in addition to one
    that the base ships.
    """
    begin = ["ctk_guard_run before-apt", apt, "ctk_guard_run after-apt"] if apt else ["ctk_guard_run before"]
    parts = [
        *_tools(lock, wanted),
        f"{END}() {{",
        "    ctk_status=$1",
        "    trap - EXIT",
        '    if [ "$ctk_status" -eq 0 ]; then',
        "        ctk_guard_run after || ctk_status=$?",
        "    else",
        "        ctk_guard_run failed || true",
        "    fi",
        '    rm -rf "$ctk_guard"',
        '    exit "$ctk_status"',
        "}",
        "# An `exit 0` in the middle of a script does not bypass the guard.",
        f"trap '{END} $?' EXIT",
        *begin,
        *_CONSTRAINED,
    ]
    return "\n".join(parts)


# Installs exactly the files of the lock.
INSTALL = "ctk_guard_run install"
# Compares, and ends `%post`: it must come last.
GUARD_AFTER = f"{END} 0"


def guarded(lock: Lock, script: str, wanted: ImportStep | None = None, *, apt: str = "") -> str:
    """All parts: guard, `apt`, what else `script` does, guard with the import step."""
    return "\n".join([guard_before(lock, wanted, apt), script, GUARD_AFTER])


@dataclass(frozen=True, slots=True)
class LayerScripts:
    """The scripts of a layered build, each for a shell of its own; "" where there is nothing to run."""

    apt: str
    packages: str
    tail: str


def layer_scripts(
    lock: Lock | None,
    *,
    apt: str,
    packages: str,
    rest: str,
    may_install: bool = True,
) -> LayerScripts:
    """The same as `guarded`, divided into layers, but for the guard: `over_layers` compares the finished layers.

    Nothing of the base is hashed in the container, and nothing is imported: what will be imported, and with which
    environment, is not in these texts, so that a change of it repeats no script. `packages` is the text that contains
    INSTALL, `rest` all that comes after it. `may_install`: whether a user's own commands are in `rest`, which need the
    constraint file. Why a package is installed is in none of them, either.
    """
    if lock is not None:
        lock = replace(lock, packages=tuple(replace(package, required_by=()) for package in lock.packages))
        packages = packages and _constrained(lock, packages)
        rest = _constrained(lock, rest) if rest and may_install else rest
    return LayerScripts(
        apt=apt and _begun("apt", apt),
        packages=packages and _begun("packages", packages),
        tail=rest and _begun("files and post", rest),
    )


def import_script(lock: Lock, wanted: ImportStep) -> str:
    """The import step, for a read-only container of the finished layers.

    Failed imports are in its output, and do not change its exit status; so is what each import looked for.
    """
    return _begun("imports", _isolated(lock, wanted, _IMPORTS, IMPORTING_FILES[:1]))


def _begun(name: str, text: str) -> str:
    return f"echo '{LAYER_BEGINS} {name}'\n{text}"


# Some packages write to the home directory when they are imported. In a job that is the user's own.
_IMPORTS = """mkdir "$ctk_guard/home"
export HOME="$ctk_guard/home"
ctk_guard_run imports </dev/null"""


def _constrained(lock: Lock, script: str) -> str:
    """`script` with the guard's tools, under the constraint file."""
    return _isolated(lock, ImportStep(()), "\n".join(("ctk_guard_run constraint", *_CONSTRAINED, script)))


def _isolated(lock: Lock, wanted: ImportStep, script: str, more: tuple[str, ...] = ()) -> str:
    """`script` with the guard's tools, and the files `more` of them, of which nothing stays."""
    parts = [
        *_tools(lock, wanted, more),
        f"{END}() {{",
        "    ctk_status=$1",
        "    trap - EXIT",
        '    if [ "$ctk_status" -ne 0 ]; then',
        "        ctk_guard_run stopped || true",
        "    fi",
        '    rm -rf "$ctk_guard"',
        '    exit "$ctk_status"',
        "}",
        "# An `exit 0` in the middle of a script skips only what is left of that script.",
        f"trap '{END} $?' EXIT",
        "trap 'trap - EXIT; rm -rf \"$ctk_guard\"; exit 143' HUP INT TERM",
        script,
        GUARD_AFTER,
    ]
    return "\n".join(parts)


def _tools(lock: Lock, wanted: ImportStep | None, more: tuple[str, ...] = ()) -> list[str]:
    """Writes the guard's files to a temporary directory, and defines how they run."""
    return [
        "# The ctk guard: no command below may change the GPU framework of the base.",
        'ctk_guard=$(mktemp -d "${TMPDIR:-/tmp}/ctk-new.XXXXXX" 2>/dev/null || mktemp -d /tmp/ctk-new.XXXXXX)',
        "# The directory gets its name when it is open: the next build removes one that no process has open.",
        'exec 9<"$ctk_guard"',
        "ctk_named=${ctk_guard%/*}/ctk-guard.${ctk_guard##*.}",
        'mv "$ctk_guard" "$ctk_named" && ctk_guard=$ctk_named',
        *_here_document("lock.json", lock_for_guard(lock, wanted)),
        *(line for name in (*_FILES, *more) for line in _here_document(name, payload(name))),
        *_choose_python(lock.base.executable),
        "ctk_guard_run() {",
        '    PYTHONNOUSERSITE=1 "$ctk_python" -E -s -B "$ctk_guard/guard.py" "$1" "$ctk_guard"',
        "}",
    ]


def lock_for_guard(lock: Lock, wanted: ImportStep | None = None) -> str:
    """The data of a lock that the guard needs, as JSON for a definition."""
    document = guard_document(lock, wanted or import_step(lock))
    # The definition's parser reads two braces as a build argument. In this JSON they can only occur in strings.
    return json.dumps(document, indent=1).replace("{{", "{\\u007b").replace("}}", "}\\u007d")


@cache
def payload(name: str) -> str:
    """The text of one of the guard's files."""
    return (_PAYLOAD / name).read_text(encoding="utf-8")


def _here_document(name: str, text: str) -> list[str]:
    """Writes a file; a large one in parts, between which a definition can be divided into sections."""
    parts: list[list[str]] = [[]]
    size = 0
    for line in text.rstrip("\n").split("\n"):
        size += len(line.encode()) + 1
        if size > _LARGEST_PART and parts[-1]:
            parts.append([])
            size = len(line.encode()) + 1
        parts[-1].append(line)
    written = []
    for number, lines in enumerate(parts):
        written += [f"cat {'>>' if number else '>'} \"$ctk_guard/{name}\" <<'{END_OF_FILE}'", *lines, END_OF_FILE]
    return written


def _choose_python(executable: str | None) -> list[str]:
    find = "ctk_python=$(command -v python3 || command -v python)"
    if executable is None or not executable.isprintable():
        return [find]
    return [f"ctk_python={part_braces(shlex.quote(executable))}", f'[ -x "$ctk_python" ] || {find}']


def guard_document(lock: Lock, wanted: ImportStep) -> dict[str, Any]:
    """What the guard in a build must know: part of the lock, and what is imported at the end."""
    whole = lock_document(lock)
    parts = ("protected", "bounds", "forbidden", "packages", "builds", "installer", "indexes", "added")
    return {"schema": "ctk.guard/1", **{key: whole[key] for key in parts}, "imports": _imports(wanted)}


def _imports(step: ImportStep) -> dict[str, Any]:
    return {
        "packages": [
            {"name": package.name, "modules": list(package.modules), "framework": package.framework}
            for package in step.packages
        ],
        "skip": list(step.skip),
        "environment": dict(step.environment),
        "seconds": step.seconds,
        **({"check": {"command": list(step.check), "seconds": CHECK_TIME_LIMIT}} if step.check else {}),
    }
