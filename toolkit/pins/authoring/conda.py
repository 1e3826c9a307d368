"""conda's `environment.yml` as requirements of pip."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.package_lists import Lines, PackageList, read_text
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from pathlib import Path

_DUMP_LINES, _DUMP_SHARE = 12, 0.9  # more exact versions than a user writes by hand
_CONDA = re.compile(r"(?:[A-Za-z0-9_.-]+::)?([A-Za-z0-9_.-]+)\s*(.*)")
# A build follows a version, after `=` or a space: `=1.21.2=py39h20f2e39_0`, `* *cuda*`, `>=2.0=*cuda*`.
_CONDA_BUILD = re.compile(r"(.*[\w*])(?:=|\s+)([^\s=<>!~,|]+)")
# What `conda env export` writes for each package, without its build after `--no-builds`.
_EXPORTED = re.compile(r"[^\s=<>!~]+=[0-9][^\s=<>!~*,|]*(=[^\s=]+)?")


def read_conda_environment(path: Path) -> PackageList:
    """Read an `environment.yml`, conda's names turned into PyPI's. Raises WrongInput if it is not one."""
    import yaml

    try:
        content = yaml.safe_load(read_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WrongInput(f"{path} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict) or not isinstance(content.get("dependencies"), list):
        raise WrongInput(f"{path} has no `dependencies` list: it is not a conda environment file")
    lines = Lines()
    entries = [str(entry) for entry in content["dependencies"] if not isinstance(entry, dict)]
    exported = sum(1 for entry in entries if _EXPORTED.fullmatch(entry))
    lines.is_dump = is_dump = exported >= _DUMP_LINES and exported >= _DUMP_SHARE * len(entries)
    for entry in content["dependencies"]:
        if isinstance(entry, dict):
            lines.read(_pip_lines(entry), path.parent)
            continue
        requirement = _from_conda(str(entry), exact=is_dump)
        if requirement is None:
            lines.left_out.append((str(entry), "the base provides it, or it is not a Python package (use `apt`)"))
        else:
            lines.add(requirement)
    if variables := content.get("variables"):  # without the values, which may be secret
        lines.left_out.append((f"variables: {', '.join(map(str, variables))}", "write them to [environment]"))
    return lines.package_list()


def _pip_lines(entry: dict[Any, Any]) -> list[str]:
    lines = entry.get("pip")
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _from_conda(text: str, *, exact: bool) -> str | None:
    """A match specification of conda as a requirement; `exact`: it is from a dump, where `=1.21.2` means this one."""
    match = _CONDA.fullmatch(text.strip())
    name = names().from_conda(match[1]) if match else ""
    if match is None or not name:
        return None
    built = _CONDA_BUILD.fullmatch(match[2].strip())
    return f"{name}{_specifier(built[1] if built else match[2].strip(), exact=exact or bool(built))}"


def _specifier(version: str, *, exact: bool) -> str:
    """conda's version as pip writes it: `=1.21` means any 1.21, `==1.21` and, with a build, `=1.21` mean this one."""
    if version.lstrip("= ") in ("", "*"):
        return ""
    version = re.sub(r"\.?\*$", ".*", version)
    if version.startswith("=") and not version.startswith("=="):
        any_patch = "" if exact or version.endswith("*") else ".*"
        return f"={version}{any_patch}"
    return f"=={version}" if version[0].isdigit() else version
