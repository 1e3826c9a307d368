"""The only module that runs uv: its location, its arguments, and a cache of its answers (ten minutes)."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolkit.pins.index.answers import refused, status_in
from toolkit.pins.index.repositories import git_settings
from toolkit.support.certificates import certificate_problem, trusting
from toolkit.support.errors import MissingOnHost, ProgramFailed
from toolkit.support.files import FULL, make_directory, not_written, write_atomically
from toolkit.support.paths import LARGER_AREA
from toolkit.support.processes import Completed, run, run_contained
from toolkit.support.redaction import redact, server_of
from toolkit.support.staging import staging

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# As long as PyPI lets its pages be kept (Cache-Control: max-age=600). An index that says nothing of this would be asked
# for each page again, which takes seconds; the answer to the very same question is kept instead.
FRESH_SECONDS = 600.0
_TIMEOUT_SECONDS = 300.0
# The user's own uv settings must not affect a lock that others must be able to reproduce.
_NOT_FOR_US = (
    "UV_BUILD_CONSTRAINT",
    "UV_CONSTRAINT",
    "UV_EXCLUDE",
    "UV_EXCLUDE_NEWER",
    "UV_OVERRIDE",
    "UV_PRERELEASE",
    "UV_RESOLUTION",
)
_WIDTH = "10000"  # uv breaks its messages at COLUMNS, addresses included, and ctk reads them
_OFFLINE_GAP = ("network was disabled", "network is disabled", "network connectivity is disabled", "in the cache")
_UNREACHED = re.compile(r"(?:Failed to fetch: `|for url \()([^`\s)]+)")
_OF_DISKS = re.compile(rf"\(os error ({errno.ENOSPC}|{errno.EDQUOT}|{errno.EIO})\)")  # as Rust prints errno(3)
_NETWORK = ("Failed to fetch", "error sending request", "Request failed after", "Could not connect", "client error")


@dataclass(frozen=True, slots=True)
class Uv:
    """uv's program, its cache, and the directory for our questions to it (not in the cache: uv refuses that).

    `patience` is how many seconds an answer may take: a resolver can spend hours in old releases.
    """

    program: str
    cache: Path
    scratch: Path
    patience: float = _TIMEOUT_SECONDS

    def call(self, arguments: Sequence[str], directory: Path, *, fresh: bool = False) -> Completed:
        """Run uv in `directory`; an identical question of the last minutes is answered from the cache, unless `fresh`.

        Raises ProgramFailed if the index cannot be reached, or no answer comes.
        """
        kept = self.cache / "ctk-answers" / _question(arguments, directory)
        if not fresh and (known := _read_answer(kept)) is not None:
            return known
        answer = self._run(arguments, directory)
        _require_no_refusal(answer)
        _require_network(answer)
        _keep_answer(kept, answer)
        return answer

    def ask_again(self, arguments: Sequence[str], directory: Path) -> Completed:
        """Run uv for a question close to one that was just asked: from its cache alone where that suffices."""
        kept = self.cache / "ctk-answers" / _question(arguments, directory)
        if (known := _read_answer(kept)) is not None:
            return known
        answer = self._run([*arguments, "--offline"], directory)
        if _has_gap(answer):
            return self.call(arguments, directory)
        _require_no_refusal(answer)
        _keep_answer(kept, answer)
        return answer

    def _run(self, arguments: Sequence[str], directory: Path) -> Completed:
        environment = {
            "UV_CACHE_DIR": str(self.cache),
            "UV_NO_PROGRESS": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "NO_COLOR": "1",
            "COLUMNS": _WIDTH,
            **trusting(),
            **git_settings(),
            **{name: "" for name in _NOT_FOR_US if name in os.environ},
        }
        if "PIP_INDEX_URL" in os.environ and not {"UV_INDEX_URL", "UV_DEFAULT_INDEX"} & os.environ.keys():
            environment["UV_DEFAULT_INDEX"] = os.environ["PIP_INDEX_URL"]
        make_directory(self.cache)  # uv itself would leave it open under a umask of 002
        make_directory(self.scratch)
        # uv leaves empty lock files in TMPDIR where it builds a source distribution.
        with staging(self.scratch) as temporary:
            environment["TMPDIR"] = str(temporary)
            try:
                answer = run_contained(
                    [self.program, *arguments], env=environment, cwd=directory, timeout=self.patience
                )
            except ProgramFailed as failure:
                raise _timed_out(failure, self.patience) if failure.code == "program-timeout" else failure from None
        if not answer.ok and (found := _OF_DISKS.search(answer.stderr)) is not None:
            raise not_written(self.cache, OSError(int(found[1]), os.strerror(int(found[1]))), LARGER_AREA)
        return answer


@contextmanager
def area_errors(directory: Path) -> Iterator[None]:
    """Say that the disk of `directory`, which is in the work area, is full, if a write in the block fails for it.

    write(2) on an open file does not say which one.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise not_written(directory, error, LARGER_AREA) from error


def _timed_out(failure: ProgramFailed, seconds: float) -> ProgramFailed:
    """A resolver may go back through all old releases of everything."""
    return ProgramFailed(
        f"the resolver found no compatible versions within {seconds:g} s",
        fix="Add version bounds to some packages of the recipe, such as the newest version that you need.",
        code="resolver-timeout",
        last_lines=(failure.message,),
    )


def own_words(stderr: str) -> tuple[str, ...]:
    """What uv printed, for an error: without its warnings, which are about files and settings of ctk."""
    return tuple(line for line in stderr.strip().splitlines() if not line.startswith(("Using ", "warning: ")))


def index_address() -> str:
    """The package index that uv asks, with the credentials that its address may hold."""
    names = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
    return next(filter(None, map(os.environ.get, names)), "https://pypi.org/simple")


def index_places() -> tuple[str, ...]:
    """All that uv takes packages from by its settings: addresses, a path of this host as one of `file:`."""
    words = [index_address()]
    for name in ("UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        words += re.split(r"[\s,]+", os.environ.get(name, ""))
    urls = (re.sub(r"^[\w.-]+=", "", word) for word in words if word)
    return tuple(url if "://" in url else f"file:{url}" for url in urls)


def open_uv(work_area: Path) -> Uv:
    """The uv that was installed with ctk, its cache in the work area unless UV_CACHE_DIR names another directory.

    Raises MissingOnHost if the package `uv` is not there.
    """
    try:
        from uv import find_uv_bin

        program = find_uv_bin()
    except (ImportError, FileNotFoundError) as error:
        raise MissingOnHost(
            "the package resolver uv, which ctk requires, is not installed",
            fix="Reinstall ctk, or run `pip install uv` in its environment.",
        ) from error
    cache = os.environ.get("UV_CACHE_DIR")
    return Uv(program, Path(cache).absolute() if cache else work_area / "cache" / "uv", work_area / "tmp")


@cache
def python_for(minor: str) -> str:
    """A Python of this host to read source distributions with: the image's own version if there is one, else ours.

    An old `setup.py` may refuse a Python that it does not know. A version manager leaves programs of that name on PATH
    that do not work, hence the try.
    """
    found = shutil.which(f"python{minor}")
    return found if found is not None and run([found, "-c", ""]).ok else sys.executable


def _question(arguments: Sequence[str], directory: Path) -> str:
    """A name for the arguments, the index that is asked, and all the files that the arguments can speak of."""
    where = [os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "PIP_INDEX_URL")]
    digest = hashlib.sha256(repr([list(arguments), where]).encode())
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            digest.update(f"\0{path.relative_to(directory)}\0".encode() + path.read_bytes())
    return f"{digest.hexdigest()}.json"


def _read_answer(path: Path) -> Completed | None:
    try:
        if time.time() - path.stat().st_mtime > FRESH_SECONDS:
            return None
        kept = json.loads(path.read_bytes())
        return Completed(tuple(kept["argv"]), int(kept["returncode"]), str(kept["stdout"]), str(kept["stderr"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _keep_answer(path: Path, answer: Completed) -> None:
    """Cache what uv found. A failure on this host, such as a build, may succeed once the user has fixed it."""
    if not answer.ok and "No solution found" not in answer.stderr:
        return
    make_directory(path.parent)
    for old in path.parent.glob("*.json"):
        with suppress(FileNotFoundError):  # another ctk prunes too
            if time.time() - old.stat().st_mtime > FRESH_SECONDS:
                old.unlink()
    write_atomically(path, json.dumps(asdict(answer)), durable=False)


def _has_gap(answer: Completed) -> bool:
    """Whether uv would have needed the network: then "no solution" proves nothing."""
    said = " ".join(answer.stderr.split())  # uv breaks its lines
    return not answer.ok and any(words in said for words in _OFFLINE_GAP)


def _require_no_refusal(answer: Completed) -> None:
    """A server that refuses access does not prove that the package is missing: the answer must not be cached."""
    found = None if answer.ok else status_in(answer.stderr)
    if found is not None:
        address, status = found
        raise refused(_shown(address), status)


def _shown(address: str) -> str:
    """An address without credentials. Of the index in the environment only the server: its path may be a token."""
    default, parts = urlsplit(index_address()), urlsplit(address)
    is_default = parts.hostname == default.hostname and parts.path.startswith(default.path)
    return server_of(address) if is_default else redact(address)


def _require_network(answer: Completed) -> None:
    if answer.ok or not any(words in answer.stderr for words in _NETWORK):
        return
    last_lines = own_words(answer.stderr)[-6:]
    if (problem := certificate_problem(answer.stderr)) is not None:
        meaning, fix = problem
        raise ProgramFailed(
            f"the package index cannot be used: {meaning}", fix=fix, code="certificate", last_lines=last_lines
        )
    found = _UNREACHED.search(answer.stderr)
    raise ProgramFailed(
        f"the package index{f' {server_of(found[1])}' if found else ''} cannot be reached",
        fix="Check the network with `ctk doctor`, and the `[[index]]` of the recipe. UV_DEFAULT_INDEX or PIP_INDEX_URL "
        "names another index in place of PyPI.",
        code="index-unreachable",
        last_lines=last_lines,
    )
