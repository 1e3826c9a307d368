"""From `bases.toml` and `bases/FAMILY.toml` to Base: every key checked, every mistake named with file and line."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from toolkit.recipes.digests import DIGEST, invented
from toolkit.recipes.fields import NAME, NAME_HINT, Word, apt_packages, one_of, text_of
from toolkit.recipes.model import ARCHITECTURES, INSTALLERS, LARGEST_IMAGE, Base, Bootstrap, DigestOf, Evidence
from toolkit.recipes.references import local_path, require_image
from toolkit.support.errors import WrongInput
from toolkit.support.tomlfile import TomlFile, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_TEXTS = ("bootstrap", "reference", "framework", "installer", "description", "source", "family", "os", "broken")
_VERSION = re.compile(r"\d+(\.\d+)*")
# What a text must look like, and an example of it.
_FORMS = {
    "python": (re.compile(r"\d+\.\d+(\.\d+)?"), "3.12"),
    "framework_version": (re.compile(r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)*(\+[a-z0-9.]+)?"), "2.6.0"),
    "cuda": (_VERSION, "12.8"),
    "cudnn": (_VERSION, "9.10.2"),
    "rocm": (_VERSION, "7.2.4"),
    "glibc": (re.compile(r"\d+\.\d+"), "2.39"),
    "driver": (re.compile(r"\d+(\.\d+){0,2}"), "525.60.13"),
    "python_path": (re.compile(r"(/[^/\s]+)+"), "/usr/bin/python3"),
}
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_CODE = re.compile(r"(sm|compute)_\d{2,3}[af]?")
_DIGESTS = ("digest", "inrelease")
_OTHERS = ("digest_of", "evidence", "checked", "architectures", "code", "runs_on", "size", "apt")
BASE_KEYS = (*_TEXTS, *_FORMS, *_DIGESTS, *_OTHERS)


def bases_in(directory: Path) -> dict[str, Base]:
    """The bases of a directory of recipes: of `bases/*.toml`, and of `bases.toml`, which may replace entries.

    Raises WrongInput with file, line and key, also if two files in `bases` have a base of the same name.
    """
    found: dict[str, Base] = {}
    files: dict[str, Path] = {}
    for path in sorted((directory / "bases").glob("*.toml")):
        for name, base in load_bases(path).items():
            if name in found:
                raise WrongInput(
                    f'two files have a base "{name}": {files[name]} and {path}', fix="Rename one of the two."
                )
            found[name], files[name] = base, path
    if (directory / "bases.toml").is_file():
        found.update(load_bases(directory / "bases.toml"))
    return found


def load_bases(path: Path) -> dict[str, Base]:
    """Read one file of bases: one table a base. Raises WrongInput with file, line and key."""
    return bases_of(read_toml(path))


def bases_of(file: TomlFile) -> dict[str, Base]:
    """The bases of a file that was read. Raises WrongInput with file, line and key."""
    return {name: _base(file, name, table) for name, table in file.content.items()}


def is_valid(key: str, value: str) -> bool:
    """Whether `value` is what a file of bases may have for `key`."""
    form, _ = _FORMS.get(key, (None, None))
    return form is None or form.fullmatch(value) is not None


def _base(file: TomlFile, name: str, table: Any) -> Base:
    if not isinstance(table, dict):
        file.fail(name, "should be a table: [name] and its keys below")
    if not NAME.fullmatch(name):  # the shell's completion and the next command that ctk prints have it
        file.fail(name, f"is not a valid name of a base: {NAME_HINT}")
    dotted = next((key for key, value in table.items() if isinstance(value, dict) and NAME.fullmatch(key)), None)
    if dotted is not None and dotted not in BASE_KEYS:
        file.fail(f"{name}.{dotted}", "is a table in a table", fix=f'Quote a name with a dot: ["{name}.{dotted}"]')
    prefix = f"{name}."
    file.check_keys(table, BASE_KEYS, prefix)
    texts = {key: text_of(file, table, key, prefix) for key in (*_TEXTS, *_FORMS, *_DIGESTS)}
    for key in ("bootstrap", "reference"):
        if not texts[key]:
            file.fail(name, f"the key {key} is missing")
    bootstrap = one_of(file, f"{prefix}bootstrap", texts["bootstrap"], Bootstrap)
    if bootstrap is Bootstrap.DOCKER:
        try:
            require_image(texts["reference"] or "")
        except WrongInput as error:
            file.fail(f"{prefix}reference", error.message, fix=error.fix)
    if texts["installer"]:
        one_of(file, f"{prefix}installer", texts["installer"], INSTALLERS)
    _check_forms(file, prefix, texts)
    _check_digests(file, prefix, texts, bootstrap)
    given: dict[str, Any] = {key: value for key, value in texts.items() if value is not None}
    base = Base(
        **{
            **given,
            "name": name,
            "bootstrap": bootstrap,
            "digest_of": _digest_of(file, table, prefix),
            "evidence": _word(file, table, "evidence", prefix, Evidence),
            "checked": _checked(file, table, prefix),
            "architectures": _architectures(file, table, prefix),
            "code": _code(file, table, prefix),
            "runs_on": _runs_on(file, table, prefix),
            "size": _size(file, table, prefix),
            "apt": apt_packages(file, table, prefix),
        }
    )
    if not base.is_local:
        return base
    try:
        # Relative to the file that says it, as all paths of recipes are.
        return replace(base, reference=str(local_path(base.reference, file.path.parent.absolute())))
    except WrongInput as error:
        file.fail(f"{prefix}reference", error.message)


def _check_forms(file: TomlFile, prefix: str, texts: Mapping[str, str | None]) -> None:
    for key, (form, example) in _FORMS.items():
        value = texts[key]
        if value is not None and not form.fullmatch(value):
            file.fail(f"{prefix}{key}", f'should look like "{example}", not "{value}"')
    if texts["broken"] is not None and not texts["broken"].strip():
        file.fail(f"{prefix}broken", "should say why the base does not work")


def _check_digests(file: TomlFile, prefix: str, texts: Mapping[str, str | None], bootstrap: Bootstrap) -> None:
    for key in _DIGESTS:
        value = texts[key]
        if value is None:
            continue
        if not DIGEST.fullmatch(value):
            file.fail(f"{prefix}{key}", "should be sha256: and 64 hexadecimal digits, in lower case")
        if reason := invented(value):
            file.fail(f"{prefix}{key}", reason, fix="Leave it out, or ask the registry for the digest.")
    if texts["digest"] is not None and bootstrap is Bootstrap.DEBOOTSTRAP:
        file.fail(f"{prefix}digest", "is that of a registry's manifest: a debootstrap base has `inrelease`")
    if texts["inrelease"] is not None and bootstrap is not Bootstrap.DEBOOTSTRAP:
        file.fail(f"{prefix}inrelease", "is for debootstrap bases: other bases have `digest`")


def _digest_of(file: TomlFile, table: Mapping[str, Any], prefix: str) -> DigestOf | None:
    named = _word(file, table, "digest_of", prefix, DigestOf)
    if named is not None and "digest" not in table:
        file.fail(f"{prefix}digest_of", "says what the digest names, but the key digest is missing")
    return named


def _word(file: TomlFile, table: Mapping[str, Any], key: str, prefix: str, words: Iterable[Word]) -> Word | None:
    value = text_of(file, table, key, prefix)
    return None if value is None else one_of(file, f"{prefix}{key}", value, words)


def _checked(file: TomlFile, table: Mapping[str, Any], prefix: str) -> str | None:
    value = table.get("checked")
    if value is None:
        return None
    if not isinstance(value, date) or isinstance(value, datetime):
        file.fail(f"{prefix}checked", f"should be a date without quotes, such as 2026-11-21, not {value!r}")
    return value.isoformat()


def _architectures(file: TomlFile, table: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    listed = file.get_texts(table, "architectures", prefix)
    for architecture in listed:
        one_of(file, f"{prefix}architectures", architecture, ARCHITECTURES)
    return _distinct(file, f"{prefix}architectures", listed)


def _code(file: TomlFile, table: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    listed = file.get_texts(table, "code", prefix)
    for architecture in listed:
        if not _CODE.fullmatch(architecture):
            file.fail(f"{prefix}code", f'"{architecture}" is neither binary code (sm_80) nor PTX (compute_80)')
    return _distinct(file, f"{prefix}code", listed)


def _runs_on(file: TomlFile, table: Mapping[str, Any], prefix: str) -> tuple[str, ...]:
    listed = file.get_texts(table, "runs_on", prefix)
    for capability in listed:
        if not _CAPABILITY.fullmatch(capability):
            file.fail(f"{prefix}runs_on", f'"{capability}" is not a compute capability such as "12.0"')
    return _distinct(file, f"{prefix}runs_on", listed)


def _distinct(file: TomlFile, key: str, listed: tuple[str, ...]) -> tuple[str, ...]:
    seen: set[str] = set()
    for entry in listed:
        if entry in seen:
            file.fail(key, f"contains {entry} twice")
        seen.add(entry)
    return listed


def _size(file: TomlFile, table: Mapping[str, Any], prefix: str) -> int | None:
    size: int | None = file.get(table, "size", int, prefix)
    if size is not None and size < 1:
        file.fail(f"{prefix}size", f"should be at least 1 byte, not {size}")
    if size is not None and size > LARGEST_IMAGE:
        file.fail(f"{prefix}size", f"should be at most {LARGEST_IMAGE} bytes")
    return size
