"""`ctk new --from PATH`: choose the reader of a file, and refuse unsupported files."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.inventory.knowledge.names import names
from toolkit.pins.authoring.conda import read_conda_environment
from toolkit.pins.authoring.freeze import preferring, reduce_dump
from toolkit.pins.authoring.imports import imports_of, scan_imports
from toolkit.pins.authoring.notebooks import read_notebook
from toolkit.pins.authoring.package_lists import read_requirements, read_text, refuse_empty
from toolkit.pins.authoring.projects import read_pyproject, read_setup_cfg
from toolkit.pins.authoring.proposal import Proposal, propose_from_imports, propose_from_list
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Finding, Severity
from toolkit.support.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.pins.authoring.package_lists import PackageList
    from toolkit.pins.authoring.projects import Project
    from toolkit.pins.index.uv import Uv
    from toolkit.recipes.model import Base

_SCRIPT = "train.py"
_INSTALLS = re.compile(r"(?:-r|--requirement)[\s=]+([^\s&;|]+)")
_READ = (
    "a script (.py), a directory of code, a notebook (.ipynb), requirements.txt, environment.yml, pyproject.toml or "
)


@dataclass(frozen=True, slots=True)
class Bases:
    """The bases to choose from, and the one that the user named."""

    known: Mapping[str, Base]
    said: str | None = None


def propose(
    source: Path,
    bases: Bases,
    open_uv: Callable[[], Uv],
    extras: Sequence[str] = (),
    *,
    keep_versions: bool = False,
) -> Proposal:
    """The recipe that `source` suggests. `open_uv` is called only where an index must be asked.

    With `keep_versions`, all packages of a dump of an environment are requirements, in exactly their versions.

    Raises WrongInput if ctk does not read such a file, or cannot parse it.
    """
    if not source.exists():
        raise WrongInput(f"{source} does not exist")
    read_project = {"pyproject.toml": read_pyproject, "setup.cfg": read_setup_cfg}.get(source.name)
    if extras and read_project is None:
        raise WrongInput("--extra works only with --from pyproject.toml or --from setup.cfg", fix="Remove --extra.")
    if read_project is not None:
        requests, project = read_project(source, extras)
        if project is None:
            refuse_empty(requests, source)
        return _with_project(_of_list(requests, bases, open_uv), project, source, bases)
    _refuse(source)
    if source.suffix == ".ipynb":
        return _of_notebook(source, bases)
    if source.is_dir() or source.suffix == ".py":
        return _of_code(source, bases)
    reader = read_requirements if source.suffix in (".txt", ".in") else read_conda_environment
    found = reader(source)
    refuse_empty(found, source)
    return _of_list(found, bases, open_uv, keep_versions=keep_versions)


def _of_code(source: Path, bases: Bases) -> Proposal:
    script = source / _SCRIPT if source.is_dir() else source
    proposal = propose_from_imports(scan_imports(source), names(), knowledge(), bases.known, bases.said)
    if not script.is_file():
        return proposal
    # A recipe is UTF-8, a name need not be.
    return replace(proposal, command=("python", one_line(str(script), "the script's name")))


def _of_notebook(source: Path, bases: Bases) -> Proposal:
    notebook = read_notebook(source)
    imports = imports_of(((where, source, tree) for where, tree in notebook.cells), source.parent, {})
    asked = notebook.installs
    proposal = propose_from_imports(
        imports, names(), knowledge(), bases.known, bases.said, installed=asked.requirements
    )
    script = source.with_suffix(".py").name
    message = "a job runs a script, not a notebook: the recipe has no command"
    fix = f"`jupyter nbconvert --to script {source.name}` writes {script}; `ctk sbatch … -- python {script}` runs it."
    note = Finding("notebook", Severity.INFO, message, fix)
    findings = (*proposal.findings, *asked.findings(), note)
    return replace(proposal, findings=findings, indexes=asked.indexes, command=())


def _of_list(found: PackageList, bases: Bases, open_uv: Callable[[], Uv], *, keep_versions: bool = False) -> Proposal:
    requirements, findings = found.requirements, found.findings()
    if not found.frozen or not requirements:
        proposal = propose_from_list(requirements, names(), knowledge(), bases.known, findings, bases.said)
        return replace(proposal, indexes=found.indexes)
    reduced = reduce_dump(open_uv(), requirements, found.indexes)
    lines = (*reduced.direct, *(reduced.others if keep_versions else ()))
    findings = (*findings, *reduced.findings)
    proposal = propose_from_list(lines, names(), knowledge(), bases.known, findings, bases.said, dump=True)
    return replace(preferring(proposal, reduced.listed, keep_versions=keep_versions), indexes=found.indexes)


def _with_project(proposal: Proposal, project: Project | None, source: Path, bases: Bases) -> Proposal:
    if project is None:
        message = f"{source} has no code next to it (`src`, or a package of its name): only its dependencies are added"
        finding = Finding("project-not-installed", Severity.INFO, message)
        return replace(proposal, findings=(*proposal.findings, finding))
    message = f"{project.name} itself is copied to /usr/src/{project.name} in the image and installed there"
    findings = [*proposal.findings, Finding("project-installed", Severity.INFO, message)]
    base = bases.known.get(proposal.base or "")
    if base and base.python and project.requires_python and not _allows(project.requires_python, base.python):
        message = (
            f"{project.name} requires Python {project.requires_python}, and the base {base.name} has {base.python}"
        )
        findings.append(
            Finding("other-python", Severity.WARNING, message, "`ctk bases` shows the Python version of each base.")
        )
    return replace(proposal, findings=tuple(findings), project=project)


def _allows(specifier: str, python: str) -> bool:
    """Whether some release of `python` (`3.11`) meets a specifier, which may name a patch (`>=3.11.2`)."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(specifier)
    except InvalidSpecifier:
        return True
    minor = ".".join(python.split(".")[:2])
    return any(allowed.contains(f"{minor}.{patch}", prereleases=True) for patch in range(40))


def _refuse(source: Path) -> None:
    """Raise WrongInput for an unsupported file, with what to use instead."""
    name = source.name.lower()
    if name.startswith(("dockerfile", "containerfile")) or name.endswith((".dockerfile", ".containerfile")):
        raise _dockerfile(source)
    if name == "setup.py":
        raise WrongInput(
            f"{source} is a Python program: its requirements are known only when it runs",
            fix="Use --from pyproject.toml, setup.cfg or requirements.txt, or the directory with your code.",
        )
    if source.is_dir() or source.suffix in (".py", ".ipynb", ".yml", ".yaml", ".txt", ".in"):
        return
    ways = {
        "pipfile": "`pipenv requirements > requirements.txt` writes a list that ctk reads.",
        "pipfile.lock": "`pipenv requirements > requirements.txt` writes a list that ctk reads.",
        "poetry.lock": "`poetry export --without-hashes -o requirements.txt` writes a list that ctk reads.",
        "uv.lock": "Use --from pyproject.toml instead.",
    }
    raise WrongInput(f"ctk does not read {source}", fix=ways.get(name, f"Give {_READ}setup.cfg."))


def _dockerfile(source: Path) -> WrongInput:
    """A Dockerfile is not read: its list of packages or its finished image can be used instead."""
    lists = [name for name in _INSTALLS.findall(read_text(source)) if (source.parent / Path(name).name).is_file()]
    ways = (
        [f"It installs {Path(lists[0]).name}: `--from {source.parent / Path(lists[0]).name}` reads that."]
        if lists
        else []
    )
    ways.append(
        "On a machine with Docker or Podman: `docker build -t mine .`, `docker save -o mine.tar mine`; then here "
        "`ctk build docker-archive:mine.tar`, or a recipe on it: `ctk build NAME --base docker-archive:mine.tar`."
    )
    return WrongInput(f"{source} is a Dockerfile: ctk does not run Dockerfiles", fix=" ".join(ways))
