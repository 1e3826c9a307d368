"""`ctk audit`: whether an image can use a GPU, read from its file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.clusters import ClusterOption, cluster_machines, profile_of, refuse_both
from toolkit.cli.documents import images as documents
from toolkit.cli.output import print_findings, print_json, print_table, say, suggest
from toolkit.cli.used_image import require_undamaged
from toolkit.gpu.audit import audit_image
from toolkit.gpu.choosing import BaseRequest, refuse_contradiction
from toolkit.gpu.compatibility import listed_gpus
from toolkit.gpu.targets import check_target, gpus_of, machines
from toolkit.inventory.formats.rootfs import LAYERED
from toolkit.recipes.architectures import parse_architecture
from toolkit.recipes.model import Target
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Verdict
from toolkit.support.text import path_argument

if TYPE_CHECKING:
    from toolkit.gpu.audit import Audit
    from toolkit.inventory.knowledge.builds import FrameworkBuild
    from toolkit.recipes.model import Recipe

_STYLES = {Verdict.GPU_READY: "bold green", Verdict.GPU_BROKEN: "bold red"}


def audit(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="An image: .sif, sandbox directory or squashfs file.")],
    driver: Annotated[
        str | None,
        typer.Option("--driver", metavar="VERSION", help="NVIDIA driver to check for, such as 535.104.05."),
    ] = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option("--gpu", metavar="GPU", help="GPU type to check for: V100, sm_70 or 7.0; repeatable."),
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option("--arch", metavar="ARCH", help="Processor of the nodes to check for: x86_64 or aarch64."),
    ] = None,
    cluster: ClusterOption = None,
    allow: Annotated[
        list[Verdict] | None,
        typer.Option("--allow", metavar="VERDICT", help="Also treat this verdict as success; repeatable."),
    ] = None,
    packages: Annotated[bool, typer.Option("--packages", help="Show all installed packages.")] = False,
    sbom: Annotated[
        Path | None,
        typer.Option("--sbom", metavar="FILE", help="Write a CycloneDX bill of materials (JSON) to FILE."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check on any host whether an image can use a GPU.

    The image is not run, and no container runtime is needed. ctk reads the image's frameworks and their builds, the
    CUDA libraries that they load, duplicate installations, and the drivers and GPU types that the image supports. If
    no machine is named, an image that ctk built is checked for the `[target]` of its recipe.

    Verdicts: gpu-ready (exit status 0), gpu-broken, cpu-only and no-framework (exit status 1).

        ctk audit trial.sif
        ctk audit trial.sif --driver 535.104.05 --gpu V100    the machine that it is for
        ctk audit trial.sif --cluster abci3                   all GPUs of a cluster, by its profile
        ctk audit trial.sif --json --allow cpu-only           in CI
    """
    refuse_both(cluster, gpu=gpu, driver=driver, arch=arch)
    require_undamaged(image)
    target = Target(listed_gpus(gpu or ()), driver, (parse_architecture(arch),) if arch else ())
    refuse_contradiction(BaseRequest(gpus=gpus_of(target), architectures=target.architectures))
    recipe = _recipe_of(image)
    if recipe is not None and target == Target() and cluster is None:
        target = _target_of(recipe)
    wanted = machines(target) if cluster is None else cluster_machines(profile_of(cluster))
    found = audit_image(image, *wanted, command=recipe.job.command if recipe else ())
    if sbom is not None:
        from toolkit.inventory.contents.sbom import write_sbom

        write_sbom(found.facts.inventory, sbom)
        if found.facts.inventory.form == LAYERED:
            _say_what_to_scan(image, sbom)
    if json:
        print_json("ctk.audit/1", documents.audit(found, packages=packages), found.findings)
    else:
        _show(found, image, packages=packages)
    if found.verdict is not Verdict.GPU_READY and found.verdict not in (allow or ()):
        raise typer.Exit(1)


def _say_what_to_scan(image: Path, sbom: Path) -> None:
    say(
        f"{image} is layered. Scanners such as syft and grype read only its base, without a warning: "
        f"scan {sbom} instead (grype sbom:{sbom}).",
        stderr=True,
    )


def _recipe_of(image: Path) -> Recipe | None:
    """The recipe that ctk built the image from, if it is here and can be read."""
    from toolkit.builds.record import recipe_of
    from toolkit.recipes.catalogue import Catalogue

    try:
        return recipe_of(image, Catalogue.here())
    except WrongInput:
        return None


def _target_of(recipe: Recipe) -> Target:
    """The `[target]` of a recipe. What it names is printed."""
    if recipe.target != Target():
        check_target(recipe)
        wanted = [*recipe.target.gpus, *([f"driver {recipe.target.driver}"] if recipe.target.driver else [])]
        wanted += recipe.target.architectures
        say(f"Checked for the [target] of {recipe.path}: {', '.join(wanted)}.", stderr=True)
    return recipe.target


def _build(build: FrameworkBuild) -> str:
    if build.rocm is not None:
        return f"ROCm {build.rocm}".strip()
    return f"CUDA {build.cuda or '?'}" if build.gpu else "CPU"


def _show(found: Audit, image: Path, *, packages: bool) -> None:
    inventory = found.facts.inventory
    what = [
        inventory.form,
        inventory.architecture or "",
        inventory.os,
        f"glibc {inventory.glibc}" if inventory.glibc else "",
    ]
    say(f"{image}: {', '.join(part for part in what if part)}")
    if found.frameworks:
        print_table(
            ("framework", "version", "build", "python", "verdict"),
            [
                (
                    framework.facts.title,
                    framework.facts.version,
                    _build(framework.facts.build),
                    framework.facts.interpreter,
                    framework.verdict,
                )
                for framework in found.frameworks
            ],
        )
    if packages:
        print_table(
            ("distribution", "version", "directory"),
            [
                (distribution.name, distribution.version, distribution.directory)
                for distribution in inventory.distributions
            ],
        )
        print_table(
            ("package", "version"),
            [(package.name, package.version) for package in (*inventory.system_packages, *inventory.conda_packages)],
        )
    print_findings(found.findings)
    say(f"Verdict: {found.verdict}", style=_STYLES.get(found.verdict, "bold yellow"))
    if found.verdict is Verdict.GPU_READY:
        suggest(["ctk", "check-gpu", path_argument(image)])
    elif found.findings:
        suggest(f"ctk explain {found.findings[0].code}")
