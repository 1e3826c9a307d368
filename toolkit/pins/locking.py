"""Create a lock from a recipe and the facts of its base, and check whether a lock is current."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from toolkit.inventory.knowledge.frameworks import knowledge, matches
from toolkit.inventory.knowledge.in_use import failing_in_use
from toolkit.inventory.knowledge.names import names
from toolkit.pins.guard.trials import import_step
from toolkit.pins.index.wheels import serves_architecture
from toolkit.pins.lock.cpu_builds import cpu_builds
from toolkit.pins.lock.document import index_document
from toolkit.pins.lock.model import Inventoried, Lock, LockedBase
from toolkit.pins.lock.protected import (
    other_builds,
    protect,
    protect_added,
    second_frameworks,
    unfit_companions,
    violations,
)
from toolkit.pins.lock.upgrade import NO_UPGRADE, Upgrade
from toolkit.recipes.architectures import architecture_of, host_architecture, lock_command
from toolkit.recipes.model import Bootstrap
from toolkit.recipes.repositories import is_repository, why_unlockable
from toolkit.support.errors import CheckFailed, WrongInput
from toolkit.support.findings import Verdict
from toolkit.support.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from toolkit.pins.bases.facts import BaseFacts
    from toolkit.pins.bases.target import PythonTarget
    from toolkit.pins.index.uv import Uv
    from toolkit.pins.lock.model import LockedPackage
    from toolkit.pins.lock.protected import ProtectedSet
    from toolkit.pins.resolver.resolve import Resolution
    from toolkit.recipes.model import Base, Recipe

_FORM = 5  # of the lock: a ctk with other rules raises it, and every older lock is stale


def make_lock(
    uv: Uv,
    recipe: Recipe,
    facts: BaseFacts,
    *,
    bases: Iterable[Base] = (),
    exclude_newer: str | None = None,
    earlier: Lock | None = None,
    upgrade: Upgrade = NO_UPGRADE,
) -> Lock:
    """The lock of a recipe.

    Versions that the recipe prefers, and those of an `earlier` lock, are kept where they can be, but for those that
    `upgrade` names.
    `bases` are searched for one that would fit where the packages do not.
    Raises CheckFailed if the packages are not available over the base, and says why.
    """
    from toolkit.pins.resolver.aliases import base_aliases
    from toolkit.pins.resolver.attempts import resolve_recipe
    from toolkit.pins.resolver.explain import find_held
    from toolkit.pins.resolver.own import held_frameworks, resolve_own
    from toolkit.pins.resolver.preferences import (
        find_displaced,
        impossible_pins,
        listed_pins,
        preferred_lines,
        wanted_versions,
    )
    from toolkit.pins.resolver.releases import pages
    from toolkit.pins.resolver.resolve import Request

    packages = check_requirements(recipe)
    target = facts.target
    protected = protect(target, knowledge())
    _refuse_conda(recipe, target, protected)
    _refuse_free_threaded(recipe, target)
    _refuse_foreign_wheels(packages, target)
    strangers = _strangers(recipe, packages)
    served = {alias.name for alias in base_aliases(target, knowledge())}
    _refuse_banned(packages, target, protected, served)
    preferred = listed_pins(recipe.prefer, target)
    wanted = wanted_versions(preferred, earlier, upgrade, packages)
    asked = Request(
        target,
        packages,
        protected,
        exclude_newer,
        indexes=recipe.indexes,
        unbound=frozenset(recipe.import_skip),
        held=held_frameworks(earlier, facts, packages, upgrade, exclude_newer),
        listed=frozenset(preferred),
        earlier=None if upgrade else earlier,
    )
    impossible = impossible_pins(asked, wanted, pages(uv), earlier)
    asked = replace(asked, prefer=tuple(preferred_lines(asked, wanted, impossible, earlier, pages(uv))))
    fresh = earlier is not None and bool(upgrade)
    choose = partial(resolve_recipe, uv, bases=list(bases), downloads=uv.cache / "ctk-sources", fresh=fresh)
    request, resolution, sources = resolve_own(choose, asked, recipe.name)
    added = {package.name: package.version for package in resolution.packages}
    own, unfit = protect_added(target, knowledge(), added), unfit_companions(target, knowledge(), added)
    _refuse_replaced(added, protected)
    brought_by = {package.name: package.required_by for package in resolution.packages}
    if found := violations(target, protected, knowledge(), added, brought_by):
        raise CheckFailed(
            "; ".join(found),
            fix="Drop the package that requires it, or start from another base.",
            code="variant-over-variant",
        )
    on_the_cpu = _judge_cpu_builds(recipe, resolution.packages, target)
    lock = Lock(
        recipe=recipe.name,
        input=input_hash(recipe, facts.digest, exclude_newer),
        base=_locked_base(facts),
        asked=packages,
        protected=protected,
        packages=resolution.packages,
        builds=sources.builds,
        installer=resolution.installer,
        held=find_held(uv, request, resolution),
        preferred=preferred,
        displaced=find_displaced(uv, request, resolution, wanted, impossible),
        present=tuple(sorted({*_pins(target), *resolution.assumed})),
        exclude_newer=exclude_newer,
        notes=(
            *strangers,
            *resolution.notes,
            *(f"{bound.name} {added[bound.name]} may not work: {bound.why}" for bound in unfit),
            *(f"{problem}. {fix}" for problem, fix in failing_in_use(_together(target, resolution))),
            *other_builds(protected, knowledge(), added),
            *second_frameworks(target, knowledge(), added, brought_by),
            *sources.notes(target, recipe.apt, recipe.name),
            *on_the_cpu,
        ),
        indexes=recipe.indexes if resolution.packages else (),
        own=own,
    )
    return replace(lock, notes=(*lock.notes, *_skipped_for_nothing(recipe, lock)))


def _together(target: PythonTarget, resolution: Resolution) -> dict[str, str]:
    """The versions in the image, by name."""
    return {
        **{name: found.version for name, found in target.installed.items()},
        **dict(pin.split("==") for pin in resolution.assumed),
        **{package.name: package.version for package in resolution.packages},
    }


def _skipped_for_nothing(recipe: Recipe, lock: Lock) -> tuple[str, ...]:
    """A note for each package in `skip` of `[imports]` that the build would not import anyway."""
    imported = {package.name for package in import_step(lock).packages}
    where = "neither a package of the recipe nor a framework of the base"
    return tuple(
        f"[imports] skip lists {name}, which is {where}: remove it"
        for name in recipe.import_skip
        if name not in imported
    )


def check_requirements(recipe: Recipe) -> tuple[str, ...]:
    """The recipe's packages in one spelling and order. Raises WrongInput for what cannot be locked."""
    found: dict[str, None] = {}
    for line in recipe.packages:
        requirement = Requirement(line)
        url = requirement.url or ""
        where = f"{recipe.path}: packages: {line!r}"
        if is_repository(url):
            if problem := why_unlockable(url):
                raise WrongInput(f"{redact(where)} {problem[0]}", fix=problem[1], code="unlockable")
        elif url and not url.startswith(("https://", "http://")):
            raise WrongInput(
                f"{where} names a file on this machine, which the build cannot access",
                fix="Copy the wheel in with [[files]] and install it in `post`: the guard checks that too.",
                code="unlockable",
            )
        found[_spelled(requirement)] = None
    return tuple(sorted(found))


def _spelled(requirement: Requirement) -> str:
    """One spelling for all: the library's own text of a requirement is not the same in each of its releases."""
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    versions = ",".join(sorted(map(str, requirement.specifier)))
    address = f" @ {requirement.url}" if requirement.url else versions
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    return f"{canonicalize_name(requirement.name)}{extras}{address}{marker}"


def input_hash(recipe: Recipe, digest: str | None, exclude_newer: str | None) -> str:
    """A hash of all that a lock answers to. Of a local base counts what it holds, of others what they are called."""
    base = recipe.base
    local = base.is_local
    question = {
        "form": _FORM,
        "packages": check_requirements(recipe),
        "bootstrap": base.bootstrap,
        "base": digest if local else base.reference,
        "recorded": [base.digest, base.python, base.framework, base.framework_version, base.installer, list(base.apt)],
        "exclude_newer": exclude_newer,
        "indexes": [index_document(index) for index in recipe.indexes],
        "import_skip": list(recipe.import_skip),
        "for_gpu": _for_gpu(recipe),
    }
    question |= {"prefer": list(recipe.prefer)} if recipe.prefer else {}
    return f"sha256:{hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()}"


def is_current(lock: Lock, recipe: Recipe, digest: str | None) -> bool:
    """Whether a lock was made for what the recipe asks now. `digest` is a local base's (`content_digest`)."""
    return lock.input == input_hash(recipe, digest, lock.exclude_newer)


def refusal(recipe: Recipe, path: Path, lock: Lock | None) -> CheckFailed:
    """What to raise where there is no current lock for the architecture, and none may be written."""
    architecture = architecture_of(recipe)
    named = architecture != host_architecture() or bool(recipe.target.architectures)
    command = f"`{lock_command(recipe.name, architecture)}`" if named else f"`ctk lock {recipe.name}`"
    where = f" for {architecture}" if named else ""
    if lock is not None:
        return CheckFailed(
            f"the lock of {recipe.name}{where} is out of date: its recipe or base changed",
            fix=f"{command} updates it.",
            code="stale-lock",
        )
    return CheckFailed(f"the recipe {recipe.name} has no lock{where}: {path}", fix=f"Run {command}.", code="no-lock")


def contradictions(recorded: Base, target: PythonTarget) -> tuple[str, ...]:
    """In what an image is not what `bases.toml` records of it: one sentence each."""
    found = []
    if recorded.python and not (target.python + ".").startswith(recorded.python + "."):
        found.append(f"bases.toml says Python {recorded.python}, the image has {target.python}")
    if recorded.framework and recorded.framework_version:
        name = canonicalize_name(recorded.framework)
        version = _installed_framework(name, target)
        # A record may be less exact than the image: 1.15 of 1.15.5.
        if not f"{version}.".startswith(recorded.framework_version.partition("+")[0] + "."):
            found.append(f"bases.toml says {name} {recorded.framework_version}, the image has {version}")
    return tuple(found)


def _installed_framework(name: str, target: PythonTarget) -> str:
    """The version of the distribution `name`, or of another one of its framework (tensorflow-gpu), else "none"."""
    framework = knowledge().framework_of(name)
    others = (other for other in sorted(target.installed) if framework is not None and framework.is_variant(other))
    there = target.installed.get(name) or next((target.installed[other] for other in others), None)
    return there.version.partition("+")[0] if there else "none"


def _pins(target: PythonTarget) -> list[str]:
    return [f"{distribution.name}=={distribution.version}" for distribution in target.installed.values()]


def _strangers(recipe: Recipe, packages: Iterable[str]) -> tuple[str, ...]:
    """Packages of the recipe that are something else on PyPI than users expect, unless a private index has them.

    Raises WrongInput for one that cannot be installed.
    """
    own = {name for index in recipe.indexes for name in index.packages}
    found = []
    for line in packages:
        stranger = names().stranger(line)
        if stranger is None or stranger.name in own or any(not index.packages for index in recipe.indexes):
            continue
        if not stranger.works:
            instead = f"Use {stranger.means} instead of {stranger.name}." if stranger.means else None
            raise WrongInput(stranger.message, fix=stranger.way or instead, code="another-package")
        found.append(f"{stranger.message}. {stranger.way}" if stranger.way else stranger.message)
    return tuple(found)


def _refuse_conda(recipe: Recipe, target: PythonTarget, protected: ProtectedSet) -> None:
    """pip does not track packages of conda, nor conda those of pip: nothing is added to such a framework."""
    ours = sorted(pin.name for pin in protected.pins if pin.name in target.conda)
    if recipe.packages and ours:
        raise WrongInput(
            f"the base {recipe.base.name} has its {', '.join(ours)} from conda: Python packages cannot be added safely",
            fix="Start from a base whose framework was installed with pip: `ctk bases` shows the installer of each.",
            code="conda-base",
        )


def _refuse_free_threaded(recipe: Recipe, target: PythonTarget) -> None:
    """uv 0.13 selects a Python by its version number, which means the standard build."""
    if recipe.packages and target.free_threaded:
        raise WrongInput(
            f"the base {recipe.base.name} has the free-threaded Python {target.minor}t: which packages have a wheel "
            "for it, ctk cannot tell",
            fix=f"Start from a base with the standard Python {target.minor}, or install the packages in `post`.",
            code="free-threaded-base",
        )


def _refuse_foreign_wheels(packages: Iterable[str], target: PythonTarget) -> None:
    """Raise CheckFailed for a wheel that the recipe names by its address and that is for another architecture."""
    for line in packages:
        requirement = Requirement(line)
        name = unquote(urlsplit(requirement.url or "").path.rpartition("/")[2])
        if requirement.marker is not None and not requirement.marker.evaluate(target.environment()):
            continue
        if name.endswith(".whl") and not serves_architecture(name, target.architecture):
            raise CheckFailed(
                f"the wheel {name} is not for {target.architecture}",
                fix=f"Name the wheel for {target.architecture}. For two architectures, list one line for each: "
                f'`{requirement.name} @ URL ; platform_machine == "{target.architecture}"`',
                code="foreign-wheel",
            )


def _refuse_banned(
    packages: Iterable[str], target: PythonTarget, protected: ProtectedSet, served: Collection[str]
) -> None:
    """Raise CheckFailed for what would overwrite a distribution of the base that cannot replace it (`served`)."""
    for line in packages:
        name = canonicalize_name(Requirement(line).name)
        for ban in () if name in target.installed or name in served else protected.forbidden:
            if matches(name, (ban.name,)):
                raise CheckFailed(
                    f"{name} cannot be installed: {ban.why}",
                    fix=f"Drop {name} from the recipe (the base already provides it), or start from another base.",
                    code="variant-over-variant",
                )


def _judge_cpu_builds(recipe: Recipe, packages: Iterable[LockedPackage], target: PythonTarget) -> tuple[str, ...]:
    """Notes of the frameworks that have no GPU code for the architecture, where nobody asked for such a build.

    If the recipe says that its image is for a GPU, raises CheckFailed for all that would compute on the CPU; those
    beside another framework with GPU code are noted.
    """
    found = tuple(cpu_builds(packages, target, knowledge(), without_cuda=_without_cuda(recipe)))
    if not _for_gpu(recipe):
        noted = recipe.verdict is not Verdict.CPU_ONLY
        return tuple(f"{build.problem}. {build.fix}" for build in found if build.unasked and noted)
    wanted = "[target] names a GPU" if recipe.target.gpus else f"[require] verdict is {recipe.verdict}"
    refused = next((build for build in found if build.beside is None), None)
    if refused is not None:
        raise CheckFailed(f"{refused.problem}, and {wanted} in {recipe.path}", fix=refused.fix, code="cpu-only-wheel")
    return tuple(f"{build.problem}: only {build.beside} computes on the GPU" for build in found)


def _for_gpu(recipe: Recipe) -> bool:
    """Whether the recipe says that its image is for a GPU. Another one may well install a build for the CPU."""
    return bool(recipe.target.gpus) or recipe.verdict is Verdict.GPU_READY


def _without_cuda(recipe: Recipe) -> bool:
    """Whether nothing but Python packages can bring CUDA: the base is known to have none, and no other step adds it."""
    adds = bool(recipe.post.strip()) or any("cud" in package for package in recipe.apt)
    return bool(recipe.base.source) and recipe.base.cuda is None and recipe.base.rocm is None and not adds


def _refuse_replaced(added: Mapping[str, str], protected: ProtectedSet) -> None:
    """A version outside of PEP 440 (2.5.1.fb) cannot be passed to a resolver, which then chooses another."""
    for pin in protected.pins:
        if pin.name in added:
            raise CheckFailed(
                f"{pin.name} {pin.version} is protected ({pin.why}): these packages would install {added[pin.name]}",
                fix="Start from a base whose framework has a version that pip understands (PEP 440).",
                code="framework-replaced",
            )


def _locked_base(facts: BaseFacts) -> LockedBase:
    base, target = facts.base, facts.target
    return LockedBase(
        name=base.name if base.bootstrap in (Bootstrap.DOCKER, Bootstrap.DEBOOTSTRAP) else base.bootstrap,
        bootstrap=base.bootstrap,
        reference=base.reference if base.bootstrap in (Bootstrap.DOCKER, Bootstrap.DEBOOTSTRAP) else None,
        digest=facts.digest,
        inventory=Inventoried.RECORDED if target.recorded else Inventoried.READ,
        python=target.python,
        architecture=target.architecture,
        glibc=".".join(map(str, target.glibc)) if target.glibc else None,
        executable=target.executable,
    )
