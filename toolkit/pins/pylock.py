"""The lock as `pylock.toml` (PEP 751), so that uv and pip install the same files elsewhere.

The lock names its files; PEP 751 also requires the address of each, which the index is asked for.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

from packaging.pylock import Pylock, PylockValidationError, is_valid_pylock_path
from packaging.utils import canonicalize_name

from toolkit import __version__
from toolkit.pins.bases.target import PythonTarget
from toolkit.pins.resolver.question import Question
from toolkit.pins.resolver.resolve import file_name, release_entries
from toolkit.recipes.architectures import lock_command
from toolkit.recipes.repositories import is_repository
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.files import open_regular, refuse_link, write_atomically
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from urllib.parse import SplitResult

    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import Lock, LockedPackage

_MARKER = re.compile(r"^# Written by `ctk lock (?P<recipe>\S+) --export`, ctk \S+, content sha256:(?P<sha256>\w+)\n")
_NOTE = """\
# `uv pip install -r pylock.toml` installs it, and so does pip 26.1 or newer with --no-deps.
# Only what the lock adds is in this file. What the base has already is listed in [tool.ctk]: `present` is all of it,
# `protected` what must be installed in the same version.
"""


def check_export(path: Path, recipe: str, *, force: bool) -> None:
    """Raise WrongInput if `path` is no name of PEP 751, or a file that ctk did not write for `recipe`."""
    if not is_valid_pylock_path(path):
        raise WrongInput(
            f"{path} is not a file name of PEP 751",
            fix="Name it pylock.toml, or pylock.NAME.toml without a dot in NAME.",
        )
    refuse_link(path)
    if force or not path.exists():
        return
    try:
        with open_regular(path) as file:
            there = _recipe_of(file.read().decode(errors="replace"))
    except OSError as error:
        raise WrongInput(f"cannot read {path}: {error.strerror}", fix="Choose another name.") from error
    if there != recipe:
        whose = f"is the export of the recipe {there}" if there else "was written or changed by another program"
        other = f"pylock.{recipe.replace('.', '-')}.toml"
        raise WrongInput(f"{path} {whose}", fix=f"Add --force to replace it, or name another file: {other}")


def export_lock(lock: Lock, path: Path, uv: Uv, *, force: bool = False) -> None:
    """Write `lock` to `path`, as `check_export` allows. Raises CheckFailed if PEP 751 cannot hold it."""
    text = pylock_text(lock, _ask_index(lock, uv))
    check_export(path, lock.recipe, force=force)
    write_atomically(path, text, keep_mode=True)


def pylock_text(lock: Lock, entries: Iterable[Mapping[str, Any]]) -> str:
    """The text of the export. `entries` are the index data of the releases, as `[[packages]]` of PEP 751.

    Raises CheckFailed if the standard cannot hold the lock.
    """
    import tomlkit

    try:
        content = _document(lock, {canonicalize_name(entry["name"]): entry for entry in entries})
        Pylock.from_dict(content)
    except (PylockValidationError, ValueError) as error:  # ValueError: urlsplit, of a bracket in a host
        raise _refused(f"the lock of {lock.recipe} cannot be a pylock.toml: {error}") from error
    tables, base = tomlkit.aot(), _table(content["tool"]["ctk"])
    for package in content["packages"]:
        tables.append(_table(package))
    document = tomlkit.document()
    document.update({key: _inline(value) for key, value in content.items() if key not in ("packages", "tool")})
    document.add("packages", tables if content["packages"] else [])
    document.add("tool", tomlkit.table(is_super_table=True).add("ctk", base))
    body = f"{_NOTE}{tomlkit.dumps(document)}"
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f"# Written by `ctk lock {lock.recipe} --export`, ctk {__version__}, content sha256:{digest}\n{body}"


def _document(lock: Lock, entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    base = lock.base
    described = {key: getattr(base, key) for key in ("name", "reference", "digest", "python", "glibc")}
    return {
        "lock-version": "1.0",
        "environments": [f"sys_platform == 'linux' and platform_machine == '{base.architecture}'"],
        "requires-python": f"=={'.'.join(base.python.split('.')[:2])}.*",
        "created-by": "ctk",
        "packages": [
            _package(package, entries.get(package.name, {}), lock_command(lock.recipe, lock.architecture))
            for package in lock.packages
        ],
        "tool": {
            "ctk": {
                "recipe": lock.recipe,
                "base": _known(described),
                "protected": [f"{pin.name}=={pin.version}" for pin in lock.protected.pins],
                "present": list(lock.present),
            }
        },
    }


def _ask_index(lock: Lock, uv: Uv) -> list[dict[str, Any]]:
    base = lock.base
    target = PythonTarget(python=base.python, installed={}, architecture=base.architecture)
    question = Question(target, lock.asked, exclude_newer=lock.exclude_newer, indexes=lock.indexes)
    return release_entries(uv, question, {package.name: package.version for package in lock.packages if package.file})


def _package(package: LockedPackage, entry: Mapping[str, Any], again: str) -> dict[str, Any]:
    name = canonicalize_name(package.name)
    if is_repository(package.url):
        return {"name": name, "vcs": _repository(package.url or "")}
    found = _file(package, entry, again)
    parts = urlsplit(_public(found["url"], name))
    url, hashes = urlunsplit(parts._replace(fragment="")), {"sha256": found["hashes"]["sha256"]}
    if package.url is not None:
        return {"name": name, "archive": _known({"url": url, "hashes": hashes, "subdirectory": _subdirectory(parts)})}
    told = {"upload-time": found.get("upload-time"), "url": url, "size": found.get("size"), "hashes": hashes}
    file = _known({"name": package.file, **told})
    index = _public(entry["index"], name) if "index" in entry else None
    files = {"wheels": [file]} if package.is_wheel else {"sdist": file}
    return _known({"name": name, "version": package.version, "index": index, **files})


def _file(package: LockedPackage, entry: Mapping[str, Any], again: str) -> dict[str, Any]:
    """The index data of the locked file."""
    if package.url is not None:
        archive = dict(entry.get("archive", {}), url=package.url)
        sha256 = package.sha256 or archive.get("hashes", {}).get("sha256")
        found = [dict(archive, hashes={"sha256": sha256})]
    else:
        files = [*entry.get("wheels", []), *([entry["sdist"]] if "sdist" in entry else [])]
        found = [file for file in files if file_name(file.get("url", "")) == package.file]
    good = [file for file in found if package.sha256 in (None, file.get("hashes", {}).get("sha256"))]
    if not good:
        raise _refused(f"the index no longer has the locked file {package.file}", f"{again} --upgrade {package.name}")
    if not good[0].get("hashes", {}).get("sha256"):
        raise _refused(
            f"pylock.toml needs the SHA-256 of each file, and the index lists none for {package.file}",
            "Share the lock file instead: `ctk build` needs no hash.",
        )
    return good[0]


def _repository(url: str) -> dict[str, str]:
    """`git+https://SERVER/PATH@COMMIT#subdirectory=…`: a lock holds no other repository."""
    parts = urlsplit(url.removeprefix("git+"))
    path, _, commit = parts.path.rpartition("@")
    address = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    return _known({"type": "git", "url": address, "commit-id": commit, "subdirectory": _subdirectory(parts)})


def _subdirectory(parts: SplitResult) -> str | None:
    return parse_qs(parts.fragment).get("subdirectory", [None])[0]


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _public(url: str, name: str) -> str:
    """`url` without user and password. Raises CheckFailed if its query holds a credential."""
    parts = urlsplit(url)
    if redact(f"?{parts.query}") != f"?{parts.query}":
        raise _refused(
            f"the address of {name} holds a credential: {redact(url)}", "Use an address without one in the recipe."
        )
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _refused(message: str, fix: str | None = None) -> CheckFailed:
    return CheckFailed(message, fix=fix, code="not-exportable")


def _recipe_of(text: str) -> str | None:
    """The recipe whose export ctk wrote as `text`; None if it is another file, or was changed since."""
    match = _MARKER.match(text)
    if match is None:
        return None
    digest = hashlib.sha256(text[match.end() :].encode()).hexdigest()
    return match["recipe"] if digest == match["sha256"] else None


def _table(values: Mapping[str, Any]) -> Any:
    """A TOML table; nested tables are inline, and a list has one value per line."""
    import tomlkit

    table = tomlkit.table()
    for key, value in values.items():
        table.add(key, _inline(value))
    return table


def _inline(value: Any) -> Any:
    import tomlkit

    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for key, item in value.items():
            table.append(key, _inline(item))
        return table
    if isinstance(value, list):
        array = tomlkit.array().multiline(multiline=bool(value))
        for item in value:
            array.append(_inline(item))
        return array
    return value
