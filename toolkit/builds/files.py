"""Files that a build writes before it calls the runtime: each step has a Python and a shell form."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.pins.guard.script import UV_MOUNT
from toolkit.support.certificates import Bundle, certificates
from toolkit.support.staging import put_in_place

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.support.paths import WorkArea

_END = "CTK_END_OF_TEXT"  # the delimiter of here-documents
# Lines that end one, or lose a byte: after the delimiter's first letters, dash (0.5.12) drops a byte above 127.
_PREFIXES = "|".join(_END[:length] for length in range(1, len(_END) + 1))
_NOT_IN_HERE_DOCUMENT = re.compile(rf"^(?:{_END}|(?:{_PREFIXES})[^\x00-\x7f])", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AreaDirectories:
    """The directories of the work area, private to the user."""

    area: WorkArea

    def shell(self) -> str:
        return f"(umask 077 && mkdir -p -- {' '.join(map(quoted, self.area.directories))})"


@dataclass(frozen=True, slots=True)
class Directory:
    """A new directory that all users can read."""

    path: Path

    def shell(self) -> str:
        return f"mkdir -m 755 -- {quoted(self.path)}"

    def run(self, _state: object = None) -> None:
        self.path.mkdir()
        self.path.chmod(0o755)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file with this text, in UTF-8; bytes that a file's name in it has are kept. All users can read it."""

    path: Path
    text: str

    def shell(self) -> str:
        path = quoted(self.path)
        if not self.text.endswith("\n") or _NOT_IN_HERE_DOCUMENT.search(self.text):
            return f"printf '%s' {shlex.quote(self.text)} > {path}\nchmod 644 -- {path}"
        return f"cat > {path} <<'{_END}'\n{self.text}{_END}\nchmod 644 -- {path}"

    def run(self, _state: object = None) -> None:
        self.path.write_text(self.text, encoding="utf-8", errors="surrogateescape")
        self.path.chmod(0o644)


@dataclass(frozen=True, slots=True)
class Certificates:
    """The certificates of some files in one. Of private keys in them, and of comments, nothing is copied."""

    path: Path
    sources: tuple[Path, ...]

    def shell(self) -> str:
        lines = "'/-----BEGIN CERTIFICATE-----/,/-----END CERTIFICATE-----/p'"
        path = quoted(self.path)
        return f"sed -n {lines} {' '.join(map(quoted, self.sources))} > {path}\nchmod 644 -- {path}"

    def run(self, _state: object = None) -> None:
        text = certificates(Bundle(source, "") for source in self.sources)
        TextFile(self.path, text).run()


@dataclass(frozen=True, slots=True)
class UvCopy:
    """uv's program alone in a directory of its own, which is bound into the build."""

    program: Path
    copy: Path

    @property
    def bind(self) -> str:
        """The bind onto the directory where the guard looks for it."""
        return f"{self.copy.parent}:{UV_MOUNT}"

    def shell(self) -> str:
        # Another build may be running the copy: it is replaced, and never written to.
        program, copy, new = map(quoted, (self.program, self.copy, self.copy.with_name(f".{self.copy.name}.new")))
        return f"cmp -s -- {program} {copy} || {{ cp -p -- {program} {new} && mv -f -- {new} {copy}; }}"

    def run(self, _state: object = None) -> None:
        if self.copy.is_file() and self.copy.stat().st_mtime_ns == self.program.stat().st_mtime_ns:
            return
        temporary = self.copy.with_name(f".{self.copy.name}.{os.getpid()}")
        shutil.copy2(self.program, temporary)
        put_in_place(temporary, self.copy)  # later its time alone says that it is whole


def quoted(path: Path) -> str:
    """A path as a word of a shell; an absolute one is never read as an option."""
    return shlex.quote(str(path))
