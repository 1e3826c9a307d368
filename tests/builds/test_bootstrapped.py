"""Bases of debootstrap: made once for a state of the archive, with a runtime that is a script."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from tests.builds.asked import context, request, small_sif
from toolkit.builds.bases import present_base
from toolkit.builds.bootstrapped import archive_state, bootstrapped_base, kept_bootstrapped, state_key
from toolkit.builds.context import Listener
from toolkit.builds.pulling import Maker
from toolkit.definitions.definition import base_header
from toolkit.recipes.model import Base, Bootstrap, Recipe
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.store.entries import is_key
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE = Base("debian-12", Bootstrap.DEBOOTSTRAP, "bookworm", apt=("python3",))


@contextmanager
def archive(content: list[bytes]) -> Iterator[str]:
    """A mirror whose InRelease is the last of `content`; it fails if there is none."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if not content or self.path != "/debian/dists/bookworm/InRelease":
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content[-1])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/debian"
    finally:
        server.shutdown()
        server.server_close()


def maker(here: Path, steps: list[str] | None = None, body: str = "cp $good $out") -> Maker:
    there = context(here, preview=False)
    there.area.create()
    program = here / "apptainer"
    good = here / "small.sif"
    if not good.exists():
        small_sif(here)
    program.write_text(
        f"#!/bin/bash\necho x >> {here}/calls\nout=${{@: -2:1}}\ngood={good}\ncp ${{@: -1}} {here}/def\n{body}\n"
    )
    program.chmod(0o755)
    runtime = Runtime(program, "apptainer", (1, 4, 5))
    return Maker(
        there.area, there.store, runtime, BuildOptions(), Listener((steps if steps is not None else []).append)
    )


def calls(here: Path) -> int:
    return len((here / "calls").read_text().splitlines())


@pytest.mark.programs
def test_a_base_is_made_once_for_a_state_and_again_for_the_next(here: Path) -> None:
    content = [b"12.1"]
    with archive(content) as mirror:
        assert kept_bootstrapped(BASE, mirror, maker(here).store) is None
        first = bootstrapped_base(BASE, mirror, maker(here))
        assert bootstrapped_base(BASE, mirror, maker(here)) == first
        assert calls(here) == 1
        assert (here / "def").read_text() == (
            f"Bootstrap: debootstrap\nOSVersion: bookworm\nMirrorURL: {mirror}\nInclude: python3\n"
        )
        content.append(b"12.2")
        second = bootstrapped_base(BASE, mirror, maker(here))
        assert second != first
        assert calls(here) == 2
        assert kept_bootstrapped(BASE, mirror, maker(here).store) == second
        bootstrapped_base(replace(BASE, apt=()), mirror, maker(here))
        assert calls(here) == 3


@pytest.mark.programs
def test_an_archive_that_does_not_answer_is_not_needed_for_a_base_that_was_made(here: Path) -> None:
    content, steps = [b"12.1"], list[str]()
    with archive(content) as mirror:
        first = bootstrapped_base(BASE, mirror, maker(here))
        content.clear()
        assert archive_state("bookworm", mirror) is None
        assert bootstrapped_base(BASE, mirror, maker(here, steps)) == first
    assert calls(here) == 1
    assert steps == [f"the archive {mirror} does not answer; using the base that was made before"]


@pytest.mark.programs
def test_a_base_that_cannot_be_made_says_so(here: Path) -> None:
    with archive([b"12.1"]) as mirror, pytest.raises(ProgramFailed, match="could not be made") as failed:
        bootstrapped_base(BASE, mirror, maker(here, body="echo 'E: Invalid Release file'; exit 1"))
    assert failed.value.code == "base-not-brought"
    assert failed.value.last_lines == ("E: Invalid Release file",)


def test_each_form_starts_from_the_base_and_a_preview_makes_none(here: Path) -> None:
    recipe = Recipe("mine", here / "defs/mine.toml", BASE, packages=("six",))
    runtime, flat_request = maker(here).runtime, request("mine")
    flat_request = replace(flat_request, options=replace(flat_request.options, layered=False))
    with archive([b"12.1"]) as mirror:
        there = replace(context(here, preview=False), runtime=runtime, mirror=mirror)
        assert present_base(request("mine"), recipe, replace(there, preview=True), Listener()).image is None
        flat = present_base(flat_request, recipe, there, Listener()).image
        assert flat is not None
        assert present_base(request("mine", sandbox=True), recipe, there, Listener()).image == flat
        offline = replace(there, offline=True)
        assert present_base(flat_request, recipe, offline, Listener()).image == flat
    assert calls(here) == 1


def test_the_key_tells_definitions_and_states_apart() -> None:
    headers = [base_header(BASE, "http://a/debian"), base_header(BASE, "http://b/debian")]
    keys = {state_key(header, state) for header in headers for state in ("1", "2")}
    assert len(keys) == 4
    assert all(map(is_key, keys))


def test_a_note_that_is_no_state_is_ignored(here: Path) -> None:
    from toolkit.builds.bootstrapped import _note

    store = context(here, preview=False).store
    note = _note(store, base_header(BASE, "http://a/debian"))
    note.parent.mkdir(parents=True)
    for text in ("", "../..", "\0" * 64, "g" * 64):
        note.write_text(text)
        assert kept_bootstrapped(BASE, "http://a/debian", store) is None
    assert kept_bootstrapped(BASE, None, store) is None
