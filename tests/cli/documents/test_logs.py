"""The document of `ctk check-gpu --log`."""

from __future__ import annotations

import io
from pathlib import Path

from toolkit.cli.documents.logs import log_check
from toolkit.gpu.logs.judge import judge_log
from toolkit.gpu.logs.reader import read_log


def test_a_document_shows_the_lines_without_secrets() -> None:
    content = b"(https://me:hunter2@example.org/) using device: cuda:0\n"
    seen = read_log(io.BytesIO(content))
    document = log_check(Path("x.log"), seen, judge_log(seen))
    assert (document["verdict"], document["log"], document["lines"]) == ("gpu-used", "x.log", 1)
    (line,) = document["evidence"]
    assert (line["line"], line["kind"], line["framework"], line["rank"]) == (1, "claim", "program", None)
    assert "hunter2" not in line["text"]


def test_a_secret_in_a_line_of_the_gate_is_not_repeated() -> None:
    begin = b"ctk: job 7 of c, x, run 1 on n1, 2026-11-22 12:00:00 UTC, token 5e1c90ab32f7\n"
    content = (
        begin
        + b"ctk[5e1c90ab32f7]: GPU gate: n1: no https://me:hunter2@example.org/ [driver-not-bound]. See https://me:hunter2@example.org/\n"
    )
    seen = read_log(io.BytesIO(content))
    judgement = judge_log(seen)
    assert "hunter2" not in str((log_check(Path("x.log"), seen, judgement), judgement.findings))
