"""What the answer of a server means to a user; uv and git, and the servers that they ask, are real."""

from __future__ import annotations

from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

import pytest

from tests.pins.python_targets import TORCH
from tests.real.company import serving
from toolkit.pins.index.download import fetch_file
from toolkit.pins.index.repositories import read_repository
from toolkit.pins.index.uv import Uv, open_uv
from toolkit.pins.resolver.question import Question, compile_lines
from toolkit.support.errors import ProgramFailed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Refusing(BaseHTTPRequestHandler):
    """Answers with the status that is the first part of the path."""

    def do_GET(self) -> None:
        status = int(self.path.split("/")[1])
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="company"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET  # noqa: N815 - the name is that of http.server

    def log_message(self, format: str, *arguments: object) -> None:
        """Be quiet."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving(Refusing) as address:
        yield address


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uv:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return open_uv(tmp_path)


REFUSED = (
    (401, "refuses access (401 Unauthorized)", "UV_INDEX_NAME_USERNAME"),
    (403, "refuses access (403 Forbidden)", "~/.netrc"),
    (404, "nothing found at", "Correct the address"),
)


# To uv, an index that answers 404 is one without the package: `explain_conflict` names it.
@pytest.mark.index
@pytest.mark.parametrize(
    ("kind", "status", "words", "fix"),
    [
        (kind, *refused)
        for kind in ("find-links", "wheel", "index")
        for refused in REFUSED
        if (kind, refused[0]) != ("index", 404)
    ],
)
def test_a_refusal_names_the_address_the_status_and_the_fix(
    uv: Uv, server: str, tmp_path: Path, kind: str, status: int, words: str, fix: str
) -> None:
    path = {"find-links": "links", "wheel": "mine-1.0-py3-none-any.whl", "index": "simple"}[kind]
    address = f"{server}/{status}/{path}"
    requirement = f"mine @ {address}" if kind == "wheel" else "mine"
    (tmp_path / "packages.txt").write_text(requirement + "\n")
    options = {"find-links": ["--find-links", address], "wheel": [], "index": ["--index", address]}[kind]
    options += ["--no-index"] if kind != "index" else []
    with pytest.raises(ProgramFailed) as raised:
        uv.call(["pip", "compile", "packages.txt", *options], tmp_path)
    assert words in raised.value.message
    assert address in raised.value.message
    assert fix in (raised.value.fix or "")


@pytest.mark.index
@pytest.mark.parametrize(("status", "words", "fix"), REFUSED)
def test_refused_file_has_same_error_as_page(server: str, tmp_path: Path, status: int, words: str, fix: str) -> None:
    with pytest.raises(ProgramFailed) as raised:
        fetch_file(f"{server}/{status}/mine-1.0.tar.gz", None, tmp_path)
    assert words in raised.value.message
    assert fix in (raised.value.fix or "")


@pytest.mark.index
@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "requires a login"), (403, "403 Forbidden"), (404, "no such repository"), (500, "answered 500")],
)
def test_refused_repository_error_has_reason(server: str, tmp_path: Path, status: int, words: str) -> None:
    with pytest.raises(ProgramFailed) as raised:
        read_repository(f"git+{server}/{status}/mine@{'a1' * 20}", ("setup.py",), tmp_path)
    assert words in raised.value.message
    assert ("[[files]]" in (raised.value.fix or "")) is (status != 500)


@pytest.mark.index
def test_error_omits_warnings_of_uv(uv: Uv, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{server}/404/simple")
    monkeypatch.setenv("UV_INDEX_URL", f"{server}/404/simple")  # uv warns: it is deprecated
    done = compile_lines(uv, Question(TORCH, ("mine",), build_constraints=("setuptools<81 ; python_version < '3'",)))
    with pytest.raises(ProgramFailed) as raised:
        done.require("asking who requires whom")
    assert "mine was not found" in " ".join(raised.value.last_lines)
    assert not [line for line in raised.value.last_lines if "warning" in line or "does not contain" in line]


def test_empty_files_are_not_passed_to_uv(uv: Uv, tmp_path: Path) -> None:
    program = tmp_path / "uv"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    asked = compile_lines(replace(uv, program=str(program)), Question(TORCH, ("mine",))).stdout
    assert "constraints.txt" not in asked
    assert "excludes.txt" not in asked
    more = Question(TORCH, ("mine",), constraints=("a<1",), build_constraints=("b<1",))
    asked = compile_lines(replace(uv, program=str(program)), more, excludes=["c"]).stdout
    assert "-c constraints.txt --excludes excludes.txt" in asked
    assert "--build-constraints build-constraints.txt" in asked
