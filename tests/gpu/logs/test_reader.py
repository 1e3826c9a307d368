"""Reading logs of any size and content."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gpu.logs.corpus import CASES
from toolkit.gpu.logs import notes, reader
from toolkit.gpu.logs.judge import judge_log
from toolkit.gpu.logs.patterns import patterns
from toolkit.gpu.logs.reader import read_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.gpu.logs.patterns import Pattern

USED = "GPU available: True (cuda), used: True"
MIB = 1 << 20


def seen(content: bytes) -> list[tuple[str, int, int | None]]:
    return [(found.pattern.id, found.first, found.rank) for found in read_log(io.BytesIO(content)).sightings]


def test_lines_are_numbered_as_an_editor_does() -> None:
    log = read_log(io.BytesIO(f"a\r\nb\rc\n\n{USED}\nlast".encode()))
    assert [(found.first, found.text) for found in log.sightings] == [(4, USED)]
    assert (log.lines, log.size) == (5, 8 + len(USED) + 5)
    assert read_log(io.BytesIO(b"")).lines == 0


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_a_device_alone_in_a_line_is_found(end: str) -> None:
    assert seen(f"[rank1]: cuda:1{end}".encode()) == [("script-bare-gpu", 1, 1)]
    assert seen(f"cpu{end}".encode()) == [("script-bare-cpu", 1, None)]
    assert not seen(f"memory of cuda:1{end}".encode())


def test_first_and_last_line_and_count_are_kept() -> None:
    found = read_log(io.BytesIO(f"{USED}\nx\n{USED}\n".encode())).sightings[0]
    assert (found.first, found.last, found.count) == (1, 3, 2)


@pytest.mark.parametrize(
    ("prefix", "rank"),
    [
        ("[rank3]: ", 3),
        ("[default1]:", 1),
        ("  2: ", 2),
        ("[4]: ", 4),
        ("[1,7]<stdout>:", 7),
        ("\x1b[36m[rank0]:\x1b[0m ", 0),
        ("(train pid=11589) ", None),
        ("[2020-09-05 08:54:00,565][lightning][INFO] - ", None),
    ],
)
def test_a_rank_is_read_from_the_launchers_prefix(prefix: str, rank: int | None) -> None:
    assert seen(f"{prefix}{USED}\n".encode()) == [("lightning-used", 1, rank)]


def test_an_accelerate_line_is_found_behind_a_rank() -> None:
    assert seen(b"[rank1]: Device: cuda:1\n") == [("script-device-gpu", 1, 1)]


def test_more_ranks_than_any_job_has_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "_MAX_RANKS", 3)
    ranks = [rank for _, _, rank in seen("".join(f"{rank}: {USED}\n" for rank in range(50)).encode())]
    assert ranks == [0, 1, 2, None]


def test_a_log_names_several_libraries_and_not_endlessly_many() -> None:
    line = "Could not load dynamic library 'libcudart.so.{}'; dlerror\n"
    found = read_log(io.BytesIO("".join(line.format(number) for number in range(500)).encode())).sightings
    assert [sighting.meaning for sighting in found] == [
        f"TensorFlow could not load libcudart.so.{number}" for number in range(8)
    ]


@pytest.mark.parametrize("offset", [-60, -30, -1, 0, 1])
@pytest.mark.parametrize("before", [b"x", b"\n"])
def test_a_line_across_two_chunks_is_found(offset: int, before: bytes) -> None:
    content = before * (MIB + offset) + USED.encode() + b" " * 100
    found = read_log(io.BytesIO(content)).sightings
    assert {sighting.pattern.id for sighting in found} == {"lightning-used"}
    assert found[0].first == (1 if before == b"x" else MIB + offset + 1)


def test_a_word_deep_in_a_very_long_line_is_found() -> None:
    content = b"\xff" * (3 * MIB + 17) + USED.encode() + b"\x00" * (2 * MIB)
    assert {name for name, _, _ in seen(content)} == {"lightning-used"}


@given(st.binary(max_size=4000))
def test_any_bytes_are_read(content: bytes) -> None:
    log = read_log(io.BytesIO(content))
    assert log.size == len(content)
    assert log.not_text or log.lines == content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


@given(st.lists(st.sampled_from([*(case.log for case in CASES), "\r", "\x1b[2J", "\x00", "[rank", "\u2028", "\ud7ff"])))
def test_any_mixture_of_lines_is_read(parts: list[str]) -> None:
    read_log(io.BytesIO("".join(parts).encode()))


@given(st.sampled_from(CASES), st.integers(1, 400))
def test_the_size_of_a_chunk_changes_nothing(case: object, size: int) -> None:
    content = case.log.encode()  # type: ignore[attr-defined]

    class Slow(io.BytesIO):
        def read(self, count: int | None = -1, /) -> bytes:
            return super().read(min(size, count or size))

    def found(stream: io.BytesIO) -> set[tuple[str, int]]:
        return {(sighting.pattern.id, sighting.first) for sighting in read_log(stream).sightings}

    assert found(Slow(content)) == found(io.BytesIO(content))


@pytest.mark.parametrize(
    ("start", "what", "program"),
    [
        (gzip.compress(b"Using device: cuda", mtime=0), "compressed with gzip", "zcat"),
        (bz2.compress(b"Using device: cuda"), "compressed with bzip2", "bzcat"),
        (lzma.compress(b"Using device: cuda"), "compressed with xz", "xzcat"),
        (b"#!/usr/bin/env run-singularity\n\x00SIF_MAGIC\x00", "an image (SIF)", None),
        (b"\x7fELF\x02\x01\x01", "a program (ELF)", None),
        (bytes(range(256)), "binary data", None),
    ],
    ids=["gzip", "bzip2", "xz", "sif", "elf", "binary"],
)
def test_a_file_that_is_not_a_text_is_told(start: bytes, what: str, program: str | None) -> None:
    found = read_log(io.BytesIO(start)).not_text
    assert found is not None
    assert (found.what, found.reader) == (what, program)
    behind = read_log(io.BytesIO(b"Epoch 1\n" + start)).not_text
    assert behind is None or not behind.is_sure


@pytest.mark.parametrize(
    "start", [b"\x7fELF", b"#!/usr/bin/env run-singularity\n\x00SIF_MAGIC\x00"], ids=["elf", "sif"]
)
def test_a_file_that_is_not_a_text_is_not_read_to_its_end(start: bytes) -> None:
    content = io.BytesIO(start + bytes(32 << 20))
    assert read_log(content).sightings == []
    assert content.tell() < 32 << 20


@pytest.mark.parametrize("piece", ["1:1", "a.a:", "[(<", " \t", "- ", "/a.py:1 ", "INFO:", "no gpu found ", "rank 1: "])
def test_a_hostile_line_takes_no_long_time(piece: str) -> None:
    line = (piece * 4000)[:4000] + " cuda cpu device: gpu found falling back to cpu device(\n"
    began = time.process_time()
    read_log(io.BytesIO(line.encode() * 20))
    assert time.process_time() - began < 5


# Whatever its content, a log is read at 1 GiB a minute. Of these, some lines are too many to be looked at.
letters = random.Random(3)  # noqa: S311 - the same letters each time
CORES = [core.encode() for pattern in patterns() for core in pattern.cores]


def word(length: int = 6) -> bytes:
    return bytes(letters.choices(b"abcdefghijklmnopqrstuvwxyz", k=length))


SLOW: dict[str, Callable[[], bytes]] = {
    "each line matches": lambda: b"Using device: cuda\n",
    "each line matches and differs": lambda: b"INFO:%s:Using device: cuda\n" % word(8),
    "each line is of another rank": lambda: b"[rank%d]: step %s device: cuda\n" % (letters.randrange(2000), word()),
    "each line has a word of all patterns in turn": lambda: letters.choice(CORES) + b" " + word() + b"\n",
    "one line with words of all patterns": lambda: letters.choice(CORES) + b" " + word() + b" ",
    "words that many patterns begin with": lambda: (
        b" ".join(word(letters.randrange(2, 9)) for _ in range(8)) + b" gpu cuda device memory\n"
    ),
    "errors that all differ": lambda: (
        b"ERROR: %s failed: %s gpu error\n" % (b" ".join(word(letters.randrange(2, 9)) for _ in range(5)), word())
    ),
    "errors of no device": lambda: b"ERROR: %s failed\n" % b" ".join(word(letters.randrange(2, 9)) for _ in range(6)),
    "a progress bar": lambda: (
        b"Epoch 3: %d%%|####7   | gpu_mem 10.2G loss=0.%d \r" % (letters.randrange(100), letters.randrange(10**6))
    ),
    "newlines": lambda: b"\n" * 16000 + b"Using device: cuda\n",
    "NULs": lambda: bytes(100_000),
    "escapes": lambda: b"\x1b[31m" * 1000 + word() + b" gpu\n",
    "NCCL": lambda: (
        b"n1:%d [%d] NCCL INFO Channel %02d : 0[%x] -> 1[%x] via P2P/IPC/read\n"
        % tuple(letters.randrange(2**16) for _ in range(5))
    ),
}


def content_of(kind: str, size: int) -> bytes:
    pieces, length = [], 0
    while length < size:
        pieces.append(SLOW[kind]())
        length += len(pieces[-1])
    return b"".join(pieces)[:size]


@pytest.mark.parametrize("kind", SLOW)
def test_content_that_is_made_to_be_slow_takes_a_bounded_time(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the lines that are all looked at; `make soak` measures 1 GiB. A loaded machine gets ten times the time."""
    monkeypatch.setattr(reader, "_ALL", 0)
    monkeypatch.setattr(reader, "_ALL_TEXT", 0)
    content = content_of(kind, 2 * MIB)
    began = time.process_time()
    read_log(io.BytesIO(content))
    assert time.process_time() - began < 10 * 2 * 60 / 1024


def test_lines_that_differ_only_in_numbers_are_all_looked_at() -> None:
    log = "".join(f"2024-05-22 10:11:12,{number:06} step {number} gpu_temp 61 C\n" for number in range(150_000))
    read = read_log(io.BytesIO((log + "Using device: cuda\n").encode()))
    assert [found.pattern.id for found in read.sightings] == ["script-using-gpu"]
    assert not read.unread


def test_a_line_of_the_cpu_among_too_many_lines_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of which lines were left out that could be of the CPU is not called one of the GPU."""
    monkeypatch.setattr(reader, "_ALL", 10)
    lines = [f"INFO:{word(9).decode()}:Using device: cuda\n" for _ in range(3000)]
    lines[1500] = "INFO:x:Using device: cpu\n"
    read = read_log(io.BytesIO("".join(lines).encode()))
    judgement = judge_log(read)
    assert (read.unread, judgement.verdict.value) == (True, "not-known")
    assert [found.code for found in judgement.findings] == ["log-not-fully-read"]


def test_lines_left_out_that_could_only_be_of_the_gpu_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_ALL", 10)
    lines = [f"n1:{number}:{number} [0] NCCL INFO Channel 00 : {word().decode()}\n" for number in range(3000)]
    read = read_log(io.BytesIO("".join(lines).encode()))
    assert (read.unread, judge_log(read).verdict.value) == (False, "gpu-used")


BEGINNINGS = (
    "",
    " ",
    "- ",
    "1 ",
    "1:1 ",
    "(",
    "cuda ",
    "cpu ",
    "gpu ",
    "device ",
    "using ",
    "model on ",
    "no gpu found ",
)


def test_no_regex_takes_long() -> None:
    """On what a pattern begins with, repeated: the time of a bad regex would grow with a power of the length."""
    for pattern in patterns():
        longest = 600 if pattern.message else 1600
        for core in pattern.cores:
            for piece in BEGINNINGS:
                for line in (f"{core}{piece * 1600}"[:longest], (f"{core} {piece}" * 400)[:600]):
                    slow = _seconds(pattern, line) > 0.02 and _seconds(pattern, line) > 0.02  # a loaded machine
                    assert not slow, (pattern.id, core, piece)


def _seconds(pattern: Pattern, line: str) -> float:
    began = time.thread_time()
    pattern.regex.search(line)
    return time.thread_time() - began


MEASURE = """
import resource, sys
from toolkit.gpu.logs.reader import read_log
log = read_log(sys.stdin.buffer)
print(log.size, len(log.sightings), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
KINDS = {
    "lines": b"Epoch 3 step 1200 loss 0.0123 mem 10.2G lr 1e-4 time 0.123 data 0.001 img/s 1234\n",
    "one-line": b"Epoch 3: 47%|####7     | 587/1250 mem 10.2G loss=0.0123 ",
    "binary": bytes(range(256)).replace(b"\n", b" "),
}


@pytest.mark.parametrize("kind", KINDS)
def test_memory_does_not_grow_with_the_log(kind: str) -> None:
    """The same program reads 2 MiB and 24 MiB; `make soak` does it with 1 GiB."""

    def peak(mebibytes: int) -> int:
        piece = (KINDS[kind] * (MIB // len(KINDS[kind]) + 1))[:MIB]
        content = USED.encode() + b"\n" + piece * mebibytes
        done = subprocess.run([sys.executable, "-c", MEASURE], input=content, capture_output=True, check=True)
        size, found, memory = map(int, done.stdout.split())
        assert (size, found) == (len(content), 1)
        return memory

    assert peak(24) < peak(2) + 8 * 1024  # KiB


def test_memory_in_each_line_of_a_long_log_does_not_make_it_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_ALL", 10)
    rows = "".join(
        f"      1/100      {number % 90 + 2}.{number:05}G      1.201      1.871   28\n" for number in range(5000)
    )
    read = read_log(io.BytesIO(rows.encode()))
    assert (read.unread, judge_log(read).verdict.value) == (False, "gpu-used")


def test_more_steps_than_are_looked_at_keep_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_ALL", 1000)
    row = "epoch {} step {} loss 0.{:06} gpu_mem {}.{}G\n".format
    rows = "".join(row(step // 10_000, step, step, step % 70 + 1, step % 10) for step in range(40_000))
    read = read_log(io.BytesIO(f"Using device: cuda\n{rows}".encode()))
    assert (read.unread, judge_log(read).verdict.value) == (False, "gpu-used")
