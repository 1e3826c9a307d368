"""`ctk doctor` on hosts where something does not work: it tries what it reports, and is not green then."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User


def codes(user: User, directory: Path, environment: dict[str, str], *options: str, status: int = 0) -> dict[str, str]:
    done = user.ctk("doctor", "--json", *options, cwd=directory, env=environment, status=status)
    return {finding["code"]: finding["message"] for finding in json.loads(done.stdout)["findings"]}


@pytest.fixture
def place(ordinary_user: User) -> Iterator[Path]:
    """A directory of the user, in their home."""
    path = ordinary_user.home / f"doctor-{time.monotonic_ns()}"
    ordinary_user.run("mkdir", path, cwd=ordinary_user.home)
    yield path
    subprocess.run(["chmod", "-R", "u+rwX", str(path)], check=True)
    subprocess.run(["rm", "-rf", str(path)], check=True)


def test_what_is_reported_was_tried(ordinary_user: User, second_user: User, place: Path) -> None:
    me = ordinary_user
    good = codes(me, place, {"CTK_HOME": str(place / "area")}, "--offline")
    assert {"trial", "layers", "home", "network-skipped"} <= good.keys()
    assert len({"work-area", "small-work-area"} & good.keys()) == 1, "the free space of this machine decides which"
    assert list(place.iterdir()) == [], "nothing is left behind"
    me.run("mkdir", "-m", "0555", place / "closed", place / "home", cwd=place)
    closed = {"CTK_HOME": str(place / "closed"), "HOME": str(place / "home")}
    found = codes(me, place, closed, "--offline", status=3)
    assert {"work-area-not-writable", "home-not-writable", "trial-skipped"} <= found.keys()
    assert "Permission denied" in found["work-area-not-writable"]
    somewhere = {"CTK_HOME": "/root/nowhere/ctk", "HOME": str(place / "none")}
    assert {"work-area-not-writable", "home-missing"} <= codes(me, place, somewhere, "--offline", status=3).keys()
    foreign = {"CTK_HOME": str(second_user.home)}
    assert "work-area-not-trusted" in codes(me, place, foreign, "--offline", status=3)


def test_a_runtime_that_fails_is_found_by_the_trial(ordinary_user: User, place: Path) -> None:
    """A bind that the site or the user set, and that leads nowhere, breaks each run."""
    broken = {"CTK_HOME": str(place / "area"), "APPTAINER_BIND": "/nowhere"}
    assert "/nowhere" in codes(ordinary_user, place, broken, "--offline", status=3)["trial-run-failed"]


def test_bind_of_the_user_does_not_decide_whether_layers_work(me: User, place: Path) -> None:
    """It may lead to a file that the small image of the trial does not have."""
    bound = {"CTK_HOME": str(place / "area"), "APPTAINER_BIND": __file__}
    assert {"trial", "layers"} <= codes(me, place, bound, "--offline").keys()


@contextmanager
def index(clock: float) -> Iterator[str]:
    """An index whose clock is `clock` seconds ahead."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response_only(200)
            self.send_header("Date", formatdate(time.time() + clock, usegmt=True))
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Tests print what they need."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://ann:S3CRET@127.0.0.1:{server.server_address[1]}/simple"
    finally:
        server.shutdown()
        server.server_close()


def test_a_clock_that_differs_and_an_index_that_is_silent(ordinary_user: User, place: Path) -> None:
    with index(3600) as address:
        found = codes(ordinary_user, place, {"UV_DEFAULT_INDEX": address})
    assert " s behind the servers" in found["clock-skew"]
    assert "S3CRET" not in str(found)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        started = time.monotonic()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/simple"
        found = codes(ordinary_user, place, {"UV_DEFAULT_INDEX": address})
        assert "index-unreachable" in found
        assert time.monotonic() - started < 10, "it waits two seconds, and the machine may be busy"
