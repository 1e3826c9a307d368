"""What an image of a recipe remembers of its origin: recipe, base and tools, as texts that others may read.

Images are shared. A path of the build host outside the project becomes a file name, to be put next to the recipe; of
`[job]` only the command stays, which decides what the image holds. Values that are in the definition stay as they are.
"""

from __future__ import annotations

import os
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from uuid import UUID

from toolkit.builds.record import RecordedBase, Tools, read_record
from toolkit.pins.bases.own_file import KEYS, table_of
from toolkit.recipes.model import Bootstrap
from toolkit.recipes.references import SCHEMES, has_scheme
from toolkit.support.redaction import redact
from toolkit.support.secret_words import find_secret
from toolkit.support.text import escape_hidden_controls
from toolkit.support.tomlfile import parse_toml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolkit.pins.lock.model import Lock
    from toolkit.recipes.model import Base, Recipe

_SCHEME_OF = {bootstrap: scheme for scheme, bootstrap in SCHEMES.items()}
_PATH = re.compile(r"(?:^|[=:,])[/~]")
_PLAIN = re.compile(r"[A-Za-z0-9 ,:@/._+-]{1,500}")
# Of an entry of bases.toml, what a build needs. The other keys say how and when its facts were found.
NEEDED_KEYS = tuple(
    key for key in KEYS if key not in ("description", "family", "evidence", "checked", "size", "source")
)


def provenance_lines(image: Path, uuid: str) -> tuple[str, ...]:
    """What a job script says of its image: `uuid` of the file (hexadecimal, may be empty), and the recorded base.

    The record is text of the image: what is not plain is left out, since a line of a script must stay one.
    """
    record = read_record(image)
    base = record.base if record else None
    lines = [f"Image UUID {UUID(hex=uuid)}"] if uuid else []
    lines += [f"Base {base.name}, {base.digest}"] if base and base.digest else []
    return tuple(line for line in lines if _PLAIN.fullmatch(line))


def recorded_base(
    recipe: Recipe, start: Base, digest: str | None, lock: Lock | None, bases: Mapping[str, Base]
) -> RecordedBase:
    """The base of an image of `recipe`.

    `start` is the base as the definition names it, `digest` that of the content of a base on this machine. `bases` are
    those of bases.toml.
    """
    base = recipe.base
    if base.is_local:
        return RecordedBase(base.path.name, base.path.name, digest)
    return RecordedBase(base.name, base.reference, start.digest or base.inrelease, _entry(recipe, start, lock, bases))


def _entry(recipe: Recipe, start: Base, lock: Lock | None, bases: Mapping[str, Base]) -> str | None:
    if recipe.base.name not in bases:
        return None
    import tomlkit

    # Without a lock nothing else says by which digest the base was pulled.
    table = table_of(recipe.base if lock else start)
    return tomlkit.dumps({recipe.base.name: {key: value for key, value in table.items() if key in NEEDED_KEYS}})


def tools(runtime: str, lock: Lock | None, *, uv: bool) -> Tools:
    """The tools of a build in which `runtime` makes the image, and uv or pip install the packages of the lock."""
    installs = lock is not None and bool(lock.packages)
    return Tools(runtime=runtime, installer=(_uv() if uv else "pip") if installs else None)


def _uv() -> str:
    try:
        return f"uv {version('uv')}"
    except PackageNotFoundError:  # a uv without the metadata of its package
        return "uv"


def recorded_recipe(recipe: Recipe, start: Base, lock: Lock | None, bases: Mapping[str, Base]) -> str | None:
    """The text of a recipe that gives the same packages anywhere; None for a recipe that was read from no file."""
    if not recipe.text:
        return None
    changes = dict(_changes(recipe, start, lock, bases))
    text = _changed(recipe.text, changes) if changes else recipe.text
    # Whoever restores the recipe refuses hidden controls, which only a comment can need.
    safe = escape_hidden_controls(redact(text))
    if _comments_hold_a_secret(safe):
        return escape_hidden_controls(_without_comments(text))
    if safe == text or _same_values(safe, text):
        return safe
    return escape_hidden_controls(_without_comments(text))


def _comments_hold_a_secret(text: str) -> bool:
    """Whether a comment names a secret (`# export WANDB_API_KEY=…`), whose value `redact` cannot know."""
    return any(find_secret([line.partition("#")[2]]) for line in text.splitlines() if "#" in line)


def _same_values(safe: str, text: str) -> bool:
    """Whether only comments differ."""
    try:
        return parse_toml(safe) == parse_toml(text)
    except ValueError:
        return False


def _without_comments(text: str) -> str:
    """A recipe with something like a secret in its values: what ctk accepts there is in the definition as well.

    All its strings are in double quotes.
    """
    import tomlkit

    return tomlkit.dumps(parse_toml(text))


def _changed(text: str, changes: Mapping[str, Any]) -> str:
    import tomlkit
    from tomlkit.exceptions import ParseError

    try:
        document: Any = tomlkit.parse(text)
    except ParseError:  # tomllib has read it: tomlkit knows TOML 1.0 only in part
        document = parse_toml(text)
    for key, value in changes.items():
        if value is None:
            del document[key]
        elif key == "files":
            for entry, source in zip(document["files"], value, strict=True):
                if entry["from"] != source:
                    entry["from"] = source
        else:
            document[key] = value
    return tomlkit.dumps(document)


def _changes(recipe: Recipe, start: Base, lock: Lock | None, bases: Mapping[str, Base]) -> Iterator[tuple[str, Any]]:
    """The keys of the recipe's file that must read otherwise, with their values; None for one that goes."""
    table = parse_toml(recipe.text)
    base = _base_text(recipe, str(table.get("base", "")), start, lock, bases)
    if base != table.get("base"):
        yield "base", base
    sources = [str(entry["from"]) for entry in table.get("files", ())]
    if sources and (moved := [*_sources(recipe, sources)]) != sources:
        yield "files", moved
    if "description" in table and (description := redact(recipe.description)) != recipe.description:
        yield "description", description
    if "job" in table:
        command = _command(recipe)
        if {"command": command} != table["job"]:
            yield "job", {"command": command} if command else None


def _base_text(recipe: Recipe, written: str, start: Base, lock: Lock | None, bases: Mapping[str, Base]) -> str:
    """What a recipe says of its base. `written` stays if it says the same on another host."""
    base = recipe.base
    if base.is_local:
        if not recipe.rebased and written not in bases and _is_inside(recipe, _path_in(written)):
            return written
        tag = base.name.removeprefix("oci:").partition(":")[2] if base.bootstrap is Bootstrap.OCI else ""
        return f"{_SCHEME_OF.get(base.bootstrap, '')}./{base.path.name}{f':{tag}' if tag else ''}"
    if base.name in bases:
        return base.name
    # A lock has the digest, and is for this very reference.
    digest = base.digest if lock else start.digest
    return f"docker://{base.reference}{f'@{digest}' if digest else ''}"


def _path_in(base: str) -> str:
    return base.partition(":")[2].partition(":")[0] if has_scheme(base) else base


def _is_inside(recipe: Recipe, written: str) -> bool:
    """Whether a path of a recipe is relative, and stays in its project: the directory that holds its `defs/`."""
    if written.startswith(("/", "~")):
        return False
    directory = recipe.path.parent.name
    return not os.path.normpath(os.path.join(directory, written)).startswith("..")  # noqa: PTH118 - text, no file


def _sources(recipe: Recipe, written: Sequence[str]) -> Iterator[str]:
    """Where the files are copied from; one from elsewhere is to be put next to the recipe."""
    taken = {os.path.normpath(source) for source in written if _is_inside(recipe, source)}
    for number, source in enumerate(written, 1):
        if _is_inside(recipe, source):
            yield source
            continue
        name = Path(os.path.normpath(source)).name or "root"
        yield f"./{number}/{name}" if name in taken else f"./{name}"
        taken.add(name)


def _command(recipe: Recipe) -> list[str]:
    """The words of the job's command up to the first one with a path that may be the host's, or with a secret."""
    words = recipe.job.command
    targets = [copy.target for copy in recipe.files]
    wrong = (place for place, word in enumerate(words) if redact(word) != word or _is_of_host(word, targets))
    return list(words[: next(wrong, len(words))])


def _is_of_host(word: str, targets: Sequence[str]) -> bool:
    """Whether a word has an absolute path, and no file of the recipe is there."""
    found = _PATH.search(word)
    path = PurePosixPath(word[found.end() - 1 :]) if found else None
    return path is not None and not any(path.is_relative_to(target) for target in targets)
