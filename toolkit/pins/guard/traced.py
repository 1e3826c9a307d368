"""Whether an import that succeeded before can end in another way over other layers.

An import asks for modules, distributions and files. It recorded them (`payload/tracing.py`); what it did not ask for
has no effect on it. All that is not known to be without effect counts as one: then the packages are imported again.
"""

from __future__ import annotations

import configparser
import hashlib
import io
import json
import posixpath
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from toolkit.inventory.formats.tree import EntryKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from toolkit.inventory.formats.rootfs import Rootfs
    from toolkit.inventory.formats.tree import Tree

# Any program may read these: the loader, the C library, an interpreter's own libraries.
_SYSTEM = (
    *("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin"),
    *("/sys", "/tmp", "/usr", "/var"),  # noqa: S108
)
# Toolkits that a framework looks for by their directory alone (`os.path.exists` is not recorded).
_TOOLKITS = re.compile(r"/opt/(amd|amazon|cuda|hpcx|intel|mellanox|nvidia|rocm)", re.IGNORECASE)
_METADATA = "/.singularity.d"
_ENVIRONMENT = f"{_METADATA}/env"  # read at the start of each container
_EXECUTED = (f"{_METADATA}/actions", f"{_METADATA}/libs")
# Modules that the interpreter looks for when it starts, before anything is recorded.
_AT_START = ("sitecustomize", "usercustomize")
_INFORMATION = (".dist-info", ".egg-info")
_SCRIPTS = {"console_scripts", "gui_scripts"}  # the entry points that an import does not look for
_LARGEST = 1 << 20  # bytes of a file that is read here


def _is_below(path: str, directories: Iterable[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory.rstrip('/')}/") for directory in directories)


@dataclass(frozen=True, slots=True)
class ImportTrace:
    """What an import asked for; the paths are those inside the image, without symlinks.

    `names`: the topmost modules, whether they are there or not. `distributions`: those asked for by name. `lists`: it
    looked at all there are; `points`: at their entry points alone. `started`: the programs, there or not, that read
    nothing but the system's directories. `starts`: it started another one. `complete`: nothing was missed. `paths`:
    files outside `directories`, where modules are searched, and `prefixes`, those of the interpreter. `programs` and
    `libraries` are the directories in PATH and LD_LIBRARY_PATH.
    """

    names: tuple[str, ...]
    distributions: tuple[str, ...]
    started: tuple[str, ...]
    lists: bool
    points: bool
    starts: bool
    complete: bool
    paths: tuple[str, ...]
    directories: tuple[str, ...]
    programs: tuple[str, ...]
    libraries: tuple[str, ...]
    prefixes: tuple[str, ...]

    @property
    def is_usable(self) -> bool:
        """Whether all that could change the import is known."""
        return self.complete and not self.starts


def read_trace(text: str) -> ImportTrace | None:
    """The trace that the import step printed; None if it is none: the packages of a recipe write to the same log."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or content.keys() != {field.name for field in fields(ImportTrace)}:
        return None
    values: dict[str, Any] = {}
    for field in fields(ImportTrace):
        value = content[field.name]
        if field.type == "bool":
            if not isinstance(value, bool):
                return None
            values[field.name] = value
        elif not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            return None
        else:
            values[field.name] = tuple(value)
    return ImportTrace(**values)


def has_effect(trace: ImportTrace, layer: Tree, base: Rootfs) -> bool:
    """Whether the import may read something of `layer`, given as a tree of its own, or miss what it hides of `base`.

    The scripts in /.singularity.d/env are left out: `environment_digest` is for them.
    """
    return any(_Rule(trace, layer, base).effects("/", layer.root))


def environment_digest(layer: Rootfs) -> str | None:
    """The SHA-256 of the scripts that set the variables of a container; None if the layer has none."""
    digest, names = hashlib.sha256(), layer.names(_ENVIRONMENT)
    if not names:
        return None
    for name in names:
        path = posixpath.join(_ENVIRONMENT, name)
        what = layer.readlink(path) or layer.read_text(path) or ""
        digest.update(json.dumps([name, what]).encode())
    return digest.hexdigest()


class _Rule:
    def __init__(self, trace: ImportTrace, layer: Tree, base: Rootfs) -> None:
        self._trace, self._layer, self._base = trace, layer, base
        self._names = {*trace.names, *_AT_START}
        self._distributions = {canonicalize_name(name) for name in trace.distributions}
        self._tops: dict[str, bool] = {}
        self._searched = sorted(trace.directories, key=len, reverse=True)

    def effects(self, path: str, entry: Any) -> Iterator[bool]:
        """One value for each entry of the layer, until it is true."""
        if not self._trace.is_usable:
            yield True
        elif entry.kind is not EntryKind.DIRECTORY:
            yield entry.kind is EntryKind.WHITEOUT or self._matters(path, entry)
        else:
            there = self._base.is_directory(path) and self._base.resolve(path) == path
            if there:
                yield self._layer.is_opaque(entry) or self._base.mode(path) != self._layer.mode(entry)
            else:
                yield self._matters(path, entry)
            for name, inner in self._layer.children(entry).items():
                yield from self.effects(posixpath.join(path, name), inner)

    def _matters(self, path: str, entry: Any) -> bool:
        """Whether something that is new, or stands in the place of something else, may be read."""
        trace = self._trace
        if _is_below(path, (_METADATA,)):
            return _is_below(path, _EXECUTED)
        directory = next((found for found in self._searched if _is_below(path, (found,)) and path != found), None)
        if directory is not None:
            return trace.lists or self._matters_to_python(
                posixpath.relpath(path, directory).split("/"), directory, entry
            )
        if _is_below(path, trace.libraries):
            return True
        if posixpath.dirname(path) in trace.programs:
            return self._is_in_base(path) or posixpath.basename(path) in trace.started
        if _is_below(path, (*_SYSTEM, *trace.prefixes)) or _TOOLKITS.match(path):
            return True
        asked = any(_is_below(path, (found,)) or _is_below(found, (path,)) for found in trace.paths)
        return asked or self._is_in_base(path)

    def _matters_to_python(self, parts: list[str], directory: str, entry: Any) -> bool:
        first, last = parts[0], parts[-1]
        if first == "__pycache__":
            return len(parts) > 1 and parts[1].partition(".")[0] in self._names
        top = posixpath.join(directory, first)
        if top not in self._tops:  # with thousands of files in it
            self._tops[top] = self._matters_as_top(top, first)
        extension = posixpath.splitext(first)[1]
        if self._tops[top] or extension in _INFORMATION:
            points = self._trace.points and last == "entry_points.txt"
            return self._tops[top] or (points and self._has_entry_points(entry))
        # The loader finds a library by its name alone, on the path that another one gives. The vendored ones in
        # NAME.libs have names of their own.
        return last.startswith("lib") and ".so" in last and extension != ".libs"

    def _matters_as_top(self, path: str, name: str) -> bool:
        """Whether anything in an entry of a directory where modules are searched may be read."""
        if self._is_in_base(path) or name.endswith((".pth", ".egg-link", ".egg")):
            return True
        stem, extension = posixpath.splitext(name)
        if extension in _INFORMATION:
            return canonicalize_name(stem.partition("-")[0]) in self._distributions
        return name.partition(".")[0] in self._names

    def _has_entry_points(self, entry: Any) -> bool:
        """Whether others than scripts are in it: any group can be what an import looks for."""
        if entry.kind is not EntryKind.FILE or self._layer.size(entry) > _LARGEST:
            return True
        parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        try:
            with self._layer.open(entry) as file:
                parser.read_file(io.TextIOWrapper(file, encoding="utf-8"))
        except (configparser.Error, UnicodeDecodeError):
            return True
        return not set(parser.sections()) <= _SCRIPTS

    def _is_in_base(self, path: str) -> bool:
        return self._base.exists(path) or self._base.readlink(path) is not None
