"""A pull, with a runtime that is a script: attempts, what is read back, and one pull for several processes."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds.asked import context, small_sif
from toolkit.builds import measuring, pulling, room
from toolkit.builds.bases import base_key
from toolkit.builds.context import Listener
from toolkit.builds.pulling import Maker, pull_base, seconds_of
from toolkit.recipes.model import Base, Bootstrap
from toolkit.runtime.engine import BuildOptions, Runtime
from toolkit.store.store import Kind
from toolkit.support.errors import CtkError, MissingOnHost, ProgramFailed

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.store.store import Entry

pytestmark = pytest.mark.programs
DIGEST = f"sha256:{'b2' * 32}"
BASE = Base("hub", Bootstrap.DOCKER, "127.0.0.1:9/a/b:1", size=1000)
BUSY = "FATAL: conveyor failed to get: GET http://r/v2/b/blobs/sha256:e: unexpected status code 503 Service Unavailable"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "WAITS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(pulling, "_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(measuring, "_BETWEEN_LOOKS", 0.01)
    monkeypatch.setattr(pulling, "lent_login", lambda _: None)


def runtime(here: Path, body: str) -> Runtime:
    """A runtime that runs `body` with the number of the attempt in $n, the image in $out and a good one in $good."""
    program = here / "apptainer"
    program.write_text(
        f"#!/bin/bash\necho x >> {here}/calls\nn=$(wc -l < {here}/calls)\nout=${{@: -2:1}}\n"
        f"good={small_sif(here)}\nenv > {here}/environment\n{body}\n"
    )
    program.chmod(0o755)
    return Runtime(program, "apptainer", (1, 4, 5))


def pulled(here: Path, made: Runtime, *, base: Base = BASE, listener: Listener | None = None) -> Entry:
    there = context(here, preview=False)
    there.area.create()
    maker = Maker(there.area, there.store, made, BuildOptions(), listener or Listener())
    return pull_base(replace(base, digest=DIGEST), base_key(DIGEST), None, maker)


def calls(here: Path) -> int:
    return len((here / "calls").read_text().splitlines())


def test_a_pulled_base_is_in_the_store_and_nothing_else_is_left(here: Path) -> None:
    there = context(here, preview=False)
    entry = pulled(
        here,
        runtime(
            here,
            'mkdir -p "$APPTAINER_CACHEDIR"; head -c 500 /dev/zero > "$APPTAINER_CACHEDIR/b"\nsleep 0.3; cp $good $out',
        ),
    )
    assert there.store.find(Kind.BASE, base_key(DIGEST)) == entry
    assert entry.about["reference"] == f"127.0.0.1:9/a/b@{DIGEST}"
    left = {path.name for path in there.store.own.iterdir()}
    assert left <= {"bases", "digests", "locks"}
    assert not list((there.area.path / "cache").rglob("*")) if (there.area.path / "cache").exists() else True


def test_a_pull_reports_bytes(here: Path) -> None:
    seen: list[tuple[int, int]] = []
    body = 'mkdir -p "$APPTAINER_CACHEDIR"; head -c 500 /dev/zero > "$APPTAINER_CACHEDIR/b"\nsleep 0.3; cp $good $out'
    pulled(here, runtime(here, body), listener=Listener(on_progress=lambda *bytes_: seen.append(bytes_)))
    assert (500, 1000) in seen


@pytest.mark.parametrize(("size", "needed"), [(None, "1.0 GiB"), (1 << 40, "4.0 TiB"), (80 << 20, "384.0 MiB")])
def test_a_pull_needs_room_for_what_the_registry_will_send(
    here: Path, monkeypatch: pytest.MonkeyPatch, size: int | None, needed: str
) -> None:
    monkeypatch.setattr(pulling, "download_size", lambda _: size)
    monkeypatch.setattr(room, "free_space", lambda _: 300 << 20)
    with pytest.raises(MissingOnHost, match=f"not enough space .*: 300.0 MiB free, {needed} needed") as failed:
        pulled(here, runtime(here, "cp $good $out"))
    assert failed.value.code == "disk-full"
    assert "ctk cache prune" in (failed.value.fix or "")
    assert not (here / "calls").exists(), "nothing was downloaded"
    monkeypatch.setattr(pulling, "download_size", lambda _: 50 << 20)
    assert pulled(here, runtime(here, "cp $good $out")).path.is_file()


def test_a_pull_reports_what_is_packed_without_a_percentage(here: Path) -> None:
    seen, parts = list[tuple[int, int]](), list[str]()
    body = 'mkdir "$TMPDIR/bundle-temp-1"; echo 1234 > "$TMPDIR/bundle-temp-1/squashfs-2"\n'
    body += 'echo "INFO:    Creating SIF file..."\n'
    listener = Listener(on_progress=lambda *bytes_: seen.append(bytes_), on_part=parts.append)
    pulled(here, runtime(here, f"{body}sleep 0.3; cp $good $out"), listener=listener)
    assert (5, 0) in seen
    assert parts == ["compressing the image"]


@pytest.mark.parametrize("failing", [1, 3])
def test_a_busy_registry_is_asked_again_and_the_user_is_told(here: Path, failing: int) -> None:
    steps: list[str] = []
    body = f'if [ $n -le {failing} ]; then echo "{BUSY}"; exit 255; fi; cp $good $out'
    entry = pulled(here, runtime(here, body), listener=Listener(steps.append))
    assert entry.path.is_file()
    assert calls(here) == failing + 1
    assert sum("503 Service Unavailable); trying again in" in step for step in steps) == failing


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f"{BUSY}: {{}}", "503 Service Unavailable"),
        (f'{BUSY}: {{"errors": []}}\n\n', "503 Service Unavailable"),
        ("FATAL: reading: unexpected EOF", "unexpected EOF"),
        ("FATAL: GET http://r/v2/: TOOMANYREQUESTS: slow down", "slow down"),
        ("", "no output"),
    ],
)
def test_the_reason_of_an_attempt_is_the_status_and_not_the_body(line: str, reason: str) -> None:
    assert pulling._last(line.splitlines()).endswith(reason)


def test_a_fix_names_the_registry(here: Path) -> None:
    line = "conveyor failed to get: GET http://r/v2/b: unexpected status code 401 Unauthorized: {}"
    with pytest.raises(ProgramFailed) as failed:
        pulled(here, runtime(here, f"echo '{line}'; exit 255"))
    assert failed.value.fix is not None
    assert "`apptainer registry login docker://127.0.0.1:9`" in failed.value.fix
    assert "HOST" not in failed.value.fix


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
def test_a_busy_registry_is_given_the_time_that_it_asks_for(
    here: Path, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    monkeypatch.setattr(pulling, "retry_after", lambda _: 3600.0)
    with pytest.raises(ProgramFailed) as failed:
        pulled(here, runtime(here, f'echo "conveyor failed to get: status code {status}"; exit 255'))
    assert calls(here) == 1
    assert "The registry asks to wait 3600 s before another attempt." in (failed.value.fix or "")


def test_a_registry_that_stays_busy_ends_after_four_attempts(here: Path) -> None:
    with pytest.raises(ProgramFailed, match="could not be pulled") as failed:
        pulled(here, runtime(here, f'echo "{BUSY}"; exit 255'))
    assert (failed.value.code, calls(here)) == ("base-not-brought", 4)
    assert BUSY in failed.value.last_lines


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("FATAL: GET http://r/v2/: unexpected status code 401 Unauthorized", ""),
        ("FATAL: tls: failed to verify certificate: x509: certificate has expired or is not yet valid", "expired"),
        ("FATAL: dial tcp 127.0.0.1:9: connect: connection refused", "could not be reached"),
        ("FATAL: write /x: disk quota exceeded", "quota"),
        ("FATAL: error verifying sha256 checksum after reading 5 bytes; got 1, want 2", "altered on the way"),
    ],
)
def test_an_answer_ends_the_pull_at_once_with_its_meaning(here: Path, line: str, meaning: str) -> None:
    with pytest.raises(ProgramFailed) as failed:
        pulled(here, runtime(here, f"echo '{line}'; exit 255"))
    assert calls(here) == 1
    assert meaning in failed.value.message
    assert failed.value.fix is not None or not meaning


def test_an_image_that_was_packed_damaged_is_never_published(here: Path) -> None:
    broken = "head -c -300 $good > $out"
    entry = pulled(here, runtime(here, f"if [ $n = 1 ]; then {broken}; else cp $good $out; fi"))
    assert calls(here) == 2
    assert entry.path.read_bytes() == (here / "small.sif").read_bytes()


def test_a_runtime_that_always_packs_damaged_images_is_named(here: Path) -> None:
    with pytest.raises(ProgramFailed, match="damaged when it was packed") as failed:
        pulled(here, runtime(here, "head -c -300 $good > $out"))
    assert failed.value.code == "image-damaged"
    assert context(here, preview=False).store.find(Kind.BASE, base_key(DIGEST)) is None


def test_a_wait_that_is_too_long_ends_the_pull(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulling, "retry_after", lambda _: 3600.0)
    with pytest.raises(ProgramFailed) as failed:
        pulled(here, runtime(here, "echo 'toomanyrequests: limit'; exit 255"))
    assert calls(here) == 1
    assert "wait 3600 s" in (failed.value.fix or "")


def test_several_builds_at_once_pull_once(here: Path) -> None:
    """The lock is one of open files, so that threads stand for processes."""
    made = runtime(here, "sleep 0.3; cp $good $out")
    with ThreadPoolExecutor(6) as builds:
        entries = {entry.path for entry in builds.map(lambda _: pulled(here, made), range(6))}
    assert calls(here) == 1
    assert len(entries) == 1


def test_a_base_on_this_machine_that_changes_is_not_published(here: Path) -> None:
    from toolkit.pins.bases.steady import state_of

    archive = here / "a.tar"
    archive.write_bytes(b"one")
    base = Base("a", Bootstrap.DOCKER_ARCHIVE, str(archive))
    made = runtime(here, f"echo two > {archive}; cp $good $out")
    there = context(here, preview=False)
    maker = Maker(there.area, there.store, made, BuildOptions(), Listener())
    with pytest.raises(CtkError) as failed:
        pull_base(base, base_key(DIGEST), state_of(base), maker)
    assert failed.value.code == "base-changed"
    assert there.store.find(Kind.BASE, base_key(DIGEST)) is None


def test_the_cache_of_a_pull_is_private_whatever_the_user_set(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPTAINER_CACHEDIR", str(here / "own-cache"))
    pulled(here, runtime(here, "cp $good $out"))
    (line,) = (
        line for line in (here / "environment").read_text().splitlines() if line.startswith("APPTAINER_CACHEDIR")
    )
    assert str(context(here, preview=False).store.own) in line
    assert not (here / "own-cache").exists()


@given(st.text(max_size=40))
def test_any_retry_after_header_has_an_answer(text: str) -> None:
    found = seconds_of(text)
    assert found is None or found >= 0


def test_retry_after_is_seconds_or_a_date() -> None:
    assert seconds_of("12") == 12.0
    assert seconds_of("Sun, 22 Nov 2026 21:00:10 GMT", now=1795381200.0) == 10.0
    assert seconds_of("soon") is None
    assert seconds_of("") is None


def test_a_lock_of_a_killed_process_holds_nobody(here: Path) -> None:
    lock = context(here, preview=False).store.own / "locks" / f"{base_key(DIGEST)}.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("")
    os.utime(lock, (0, 0))
    started = time.monotonic()
    pulled(here, runtime(here, "cp $good $out"))
    assert time.monotonic() - started < 20
