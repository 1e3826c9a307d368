"""Long sections of a definition: the runtime reads none of 64 KiB, but appends several of one name to each other.

Source: "bufio.Scanner: token too long" of apptainer 1.4.5 for a %post of 78 KB, that is with 98 packages; Apptainer's
user guide, "Definition Files": sections of the same name are appended to each other.
"""

from __future__ import annotations

LARGEST = 48 << 10  # bytes of a section, well below bufio.MaxScanTokenSize of Go


def divided(text: str, end_of_file: str) -> str:
    """`text` with more lines `%post` after here-documents (lines `end_of_file`), where the section grows too long."""
    found: list[str] = []
    size, inside, end = 0, False, None
    for line in text.split("\n"):
        if line.startswith("%"):
            inside, size, end = line == "%post", 0, None
        size += len(line.encode(errors="surrogateescape")) + 1
        if inside and size > LARGEST and end is not None:
            found.insert(end, "%post")
            size = sum(len(later.encode(errors="surrogateescape")) + 1 for later in (*found[end:], line))
            end = None
        found.append(line)
        if line == end_of_file:
            end = len(found)
    return "\n".join(found)
