"""Duplicates: variants of a framework or a module, and copies in two directories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.knowledge.frameworks import knowledge
from toolkit.support.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import FrameworkCase, ImageCase


def duplicate_framework(case: FrameworkCase) -> Iterator[Finding]:
    """Two distributions that install one framework: they overwrite each other's files, and pip does not warn."""
    framework = case.framework
    variants = {(variant.name, variant.version): variant for variant in framework.variants}
    if len({variant.name for variant in variants.values()}) < 2:
        return
    names = " and ".join(f"{variant.name} {variant.version}" for variant in variants.values())
    how = "by the hash of its files" if framework.told_by_hash else "according to its files"
    yield Finding(
        "duplicate-framework",
        Severity.ERROR,
        f"{framework.title} is installed more than once: {names}. An import loads {framework.distribution.name} "
        f"{framework.distribution.version} ({how}), mixed with files of the others.",
        "Rebuild the image with only one of them; uninstalling the wrong one now removes shared files.",
    )


def duplicate_module(case: ImageCase) -> Iterator[Finding]:
    """The same for modules that are no framework (OpenCV, XGBoost, …)."""
    inventory = case.image.inventory
    for interpreter in inventory.interpreters:
        visible = inventory.visible(interpreter)
        for group in knowledge().variants:
            if knowledge().framework_of(group.distributions[0]):
                continue
            found = [distribution for name, distribution in visible.items() if group.includes(name)]
            if len(found) > 1:
                names = " and ".join(f"{distribution.name} {distribution.version}" for distribution in found)
                yield Finding(
                    "duplicate-module",
                    Severity.WARNING,
                    f"{group.title}: {names} all install the module `{group.module}`; the last one written wins.",
                    "Keep one of them in the recipe or definition.",
                )


def shadowed_distribution(case: ImageCase) -> Iterator[Finding]:
    """One distribution in two directories of an interpreter's path, in two versions: the first directory wins."""
    inventory = case.image.inventory
    for interpreter in inventory.interpreters:
        seen = inventory.visible(interpreter)
        shadowed = [
            f"{copy.name} ({seen[copy.name].version} hides {copy.version})"
            for copy in inventory.copies(interpreter)
            if copy.version != seen[copy.name].version
        ]
        if shadowed:
            yield Finding(
                "shadowed-distribution",
                Severity.WARNING,
                f"{interpreter.path} finds the copy that comes first: {', '.join(dict.fromkeys(shadowed))}.",
                "Harmless if intended (pip over Debian's packages); otherwise remove the older copy.",
            )
