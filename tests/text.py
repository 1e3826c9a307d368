"""What hostile images, builds, file names and registries say, for the tests of what ctk shows of it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import unicodedata
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Clear the screen, set the clipboard (OSC 52) and the title, hide: with ESC and with C1; then what reorders text.
ATTACKS = (
    *(
        "\x1b[2J",
        "\x1b]52;c;cm0gLXJmIH4=\x07",
        "\x1b]0;title\x1b\\",
        "\x1b[7m",
        "\x9b8m",
        "\x9d0;title\x9c",
        "\x90q\x9c",
    ),
    *("\x1bc", "\x07", "\x08\x08", "\r", "\x7f", "\u202egpj.", "\u2066\u2069", "\u061c", "\u200b", "\ufeff", "\udc9b"),
    *(
        "\nVerdict: gpu-ready",
        "\r\nError: none",
        "\x0b",
        "\x85",
        "\u2028",
        "\t",
        "[red]",
        "[/]",
        "{0}",
        "日本　語",
        "👩‍💻",
    ),
)
HOSTILE = st.lists(st.sampled_from(ATTACKS) | st.text(max_size=4), max_size=6).map("".join)

# What rich writes for ctk, and nobody else may: colours, and the moves within the live line, which hides the cursor.
_OWN_CODES = re.compile(r"\x1b\[(?:(?:0|1|2|3|1;31|31|32|33|36|1;32|1;33|38;[0-9;]+)m|\?25[lh]|2K|1A)|\r(?=\x1b\[|\n)")


def is_harmless(text: str, *, keep: str = "") -> bool:
    """Whether a terminal shows every character of `text`, but for emoji's joiner and what is to be kept."""
    return not any(
        unicodedata.category(character) in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp")
        and character not in f"{keep}\u200d"
        for character in text
    )


def without_own_codes(text: str) -> str:
    """What a terminal got, less what ctk itself tells it."""
    while (less := _OWN_CODES.sub("", text)) != text:
        text = less
    return text


def shown_on_a_terminal(argv: Sequence[str | Path], directory: Path, environment: Mapping[str, str]) -> str:
    """What a program prints whose standard input, output and error are a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(argv, cwd=directory, env=environment, stdin=slave, stdout=slave, stderr=slave):
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # Linux says EIO when the last one has closed the terminal
                break
            if not part:
                break
            shown += part
    os.close(master)
    return shown.decode().replace("\r\n", "\n")
