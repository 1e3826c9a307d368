"""The form of an image that is built: layers over its base, or one flat partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.doctor.layer_trial import PACKER, LayerTrial, keep_trial, kept_trial
from toolkit.doctor.trials import try_runtime
from toolkit.inventory.formats.kinds import PathKind, kind_of
from toolkit.inventory.formats.sif import DataType, FileSystem, PartitionType, read_sif
from toolkit.runtime.area import scratch_of
from toolkit.support.enums import StrEnum
from toolkit.support.errors import MissingOnHost, WrongInput
from toolkit.support.paths import OVERLAY_SEPARATORS
from toolkit.support.programs import find_program

if TYPE_CHECKING:
    from pathlib import Path

    from toolkit.runtime.engine import Runtime
    from toolkit.support.paths import WorkArea
    from toolkit.support.site import Site

_MOUNTED = (PartitionType.SYSTEM, PartitionType.PRIMARY_SYSTEM, PartitionType.OVERLAY)
_OMIT = "Omit --layered (`ctk fetch`: --layers): ctk then builds a flat image."
_NOT_TRIED = "a small layered image could not be tried; `ctk doctor` shows why"


class Form(StrEnum):
    """The form of a SIF."""

    LAYERED = "layered"
    FLAT = "flat"


@dataclass(frozen=True, slots=True)
class FormFacts:
    """What is against layers: this base, the site's settings, this host; None is nothing."""

    base: str | None = None
    site: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A form, and what of this host or its site is the reason of a flat one that nobody asked for."""

    form: Form
    reason: str | None = None


FLAT = Choice(Form.FLAT)


def choose(facts: FormFacts, asked: Form | None) -> Choice:
    """The form that was asked for, else layers unless something is against them.

    Raises WrongInput (`base-without-layers`) or MissingOnHost (`layers-not-usable`) if layers were asked for and are
    not possible. The site's wish does not hinder a user who asks.
    """
    if asked is Form.FLAT:
        return FLAT
    if asked is Form.LAYERED:
        if facts.base is not None:
            raise WrongInput(f"a layered image is not possible: {facts.base}", fix=_OMIT, code="base-without-layers")
        if facts.host is not None:
            message = f"a layered image is not possible on this host: {facts.host}"
            raise MissingOnHost(message, fix=f"{_OMIT} `ctk doctor` shows what is missing.", code="layers-not-usable")
        return Choice(Form.LAYERED)
    reason = facts.site or facts.host
    return Choice(Form.FLAT if reason or facts.base else Form.LAYERED, None if facts.base else reason)


def choose_form(
    asked: Form | None,
    base: Path | None,
    *,
    runtime: Runtime,
    site: Site,
    area: WorkArea,
    owners: str | None,
) -> Choice:
    """The form of an image over `base`, a SIF on this machine or None; `area` exists.

    `owners` says why owners of files cannot be kept here (`owner_problem`). The trial of a layer takes a second or two;
    its result is kept in the work area unless it may
    be another soon. Raises as `choose` does.
    """
    if asked is Form.FLAT:
        return choose(FormFacts(), asked)
    facts = FormFacts(base=base_problem(base), site=_site_problem(site))
    if facts.base is None and (facts.site is None or asked is Form.LAYERED):
        facts = FormFacts(site=facts.site, host=host_problem(runtime, area, owners))
    return choose(facts, asked)


def base_problem(base: Path | None) -> str | None:
    """Why nothing can be laid over `base`; None if layers are possible."""
    if base is None:
        return "its base is not an image on this machine"
    if (kind := kind_of(base)) is not PathKind.SIF:
        return f"its base is not a SIF, but {kind.value}"
    partitions = [found.partition for found in read_sif(base).of_type(DataType.PARTITION) if found.partition]
    mounted = [partition for partition in partitions if partition.type in _MOUNTED]
    if not any(partition.type == PartitionType.PRIMARY_SYSTEM for partition in mounted):
        return "its base has no system partition"
    if any(partition.file_system != FileSystem.SQUASHFS for partition in mounted):
        return "a partition of its base is not a plain squashfs"
    return None


def _site_problem(site: Site) -> str | None:
    if site.layers is None or site.layers.value:
        return None
    return f"the site sets layers = false ({site.layers.origin})"


def layers_problem(runtime: Runtime, site: Site, area: WorkArea) -> str | None:
    """Why a layered image is not to be used here; None if it can be."""
    return _site_problem(site) or _tried(runtime, area).problem


def host_problem(runtime: Runtime, area: WorkArea, owners: str | None) -> str | None:
    """Why layers are not possible on this host; None if they are. A trial proves it, unless an earlier one did."""
    if find_program(PACKER) is None:
        return f"there is no {PACKER} on this host (package squashfs-tools)"
    return owners or _path_problem(area) or _tried(runtime, area).problem


def _path_problem(area: WorkArea) -> str | None:
    for place in (area.path, scratch_of(area)):
        if found := next((character for character in OVERLAY_SEPARATORS if character in str(place)), None):
            return f"the path {place} has the character {found!r} in it, and the runtime splits a layer's path there"
    return None


def _tried(runtime: Runtime, area: WorkArea) -> LayerTrial:
    kept = kept_trial(area.path, runtime)
    if kept is not None:
        return kept
    trial = try_runtime(runtime, scratch_of(area))  # where a build makes layers
    found = trial.layers if trial is not None and trial.layers is not None else LayerTrial(_NOT_TRIED)
    keep_trial(area.path, runtime, found)
    return found
