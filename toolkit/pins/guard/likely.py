"""Why an import failed, according to its exception (`import_causes.toml`), and what may help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.names import names
from toolkit.support.tomlfile import read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.pins.guard.trials import ImportFailure
    from toolkit.pins.lock.model import Lock

_FILE = Path(__file__).with_name("import_causes.toml")


@dataclass(frozen=True, slots=True)
class Likely:
    """The likely cause of a failed import: `meaning` is a clause about the package.

    `need` is a requirement that the image does not meet, `other` a distribution of which it needs another version,
    `apt` Debian packages that help, `fix` what to do if no other version helps. `allow`: it may be this machine
    alone that cannot import it.
    """

    meaning: str
    need: str | None = None
    other: str | None = None
    apt: tuple[str, ...] = ()
    allow: bool = False
    fix: str | None = None


def likely_cause(failure: ImportFailure, versions: Mapping[str, str]) -> Likely | None:
    """The likely cause; None if the exception matches no known one. `versions` are those of the image."""
    content = _causes()
    for entry in content["cause"]:
        if (match := re.search(entry["pattern"], failure.error)) is None:
            continue
        groups = {key: value or "" for key, value in match.groupdict().items()}
        module = groups.get("module", "")
        found = groups.get("name") or entry.get("name") or _distribution(module, versions)
        if "what" in groups and (not found or found == failure.package):
            continue  # its own module: that says nothing of another package
        stranger = names().stranger(found)
        name = (stranger and stranger.means) or canonicalize_name(found)
        words = {**groups, "name": name, "have": f"{name} {versions[name]}" if name in versions else f"no {name}"}
        words["specifier"] = re.sub(r"\s", "", groups.get("specifier", ""))
        apt = (*entry.get("apt", ()), *filter(None, [content["libraries"].get(groups.get("library", ""))]))
        need = entry.get("need")
        return Likely(
            _filled(entry["meaning"], words),
            _filled(need, words) if need else _missing(failure, module) if "what" not in groups else None,
            name if "what" in groups else None,
            apt,
            entry.get("allow", False),
            _filled(entry["fix"], words) if "fix" in entry and not apt else None,
        )
    return None


def versions_of(lock: Lock) -> dict[str, str]:
    """The version of each distribution in an image that was built from `lock`."""
    there = dict(line.split("==", 1) for line in lock.present if "==" in line)
    pins = {pin.name: pin.version for pin in lock.protected.pins}
    return {**there, **pins, **{package.name: package.version for package in lock.packages}}


def _distribution(module: str, versions: Mapping[str, str]) -> str:
    """The distribution of the image that gives `module`; "" if none is known."""
    top = module.partition(".")[0]
    guesses = (names().distribution(module) or "", canonicalize_name(top) if top else "")
    return next((guess for guess in guesses if guess in versions), "")


def _missing(failure: ImportFailure, module: str) -> str | None:
    """The package that gives a missing module, if that is known, and it is not the failing one itself."""
    found = names().distribution(module) if module else None
    return found if found and found != failure.package else None


def _filled(template: str, words: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: words.get(match[1], match[0]), template)


@cache
def _causes() -> Mapping[str, Any]:
    return read_toml(_FILE).content
