"""The rules of the audit, listed: each takes the facts of one case and yields findings, and reads no file.

A new rule is a function in one of these two tuples, an entry for its code in `toolkit/gpu/codes/`, and a test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.gpu.rules import (
    build,
    companions,
    driver,
    duplicates,
    environment,
    generations,
    image,
    libraries,
    network,
    python,
)

if TYPE_CHECKING:
    from toolkit.gpu.facts import FrameworkCase, ImageCase
    from toolkit.support.findings import Rule

FRAMEWORK_RULES: tuple[Rule[FrameworkCase], ...] = (
    build.cpu_only_build,
    build.incomplete_framework,
    duplicates.duplicate_framework,
    libraries.missing_libraries,
    libraries.missing_other_library,
    libraries.damaged_libraries,
    libraries.private_libraries,
    libraries.disagreeing_libraries,
    libraries.older_cudnn,
    companions.companion_out_of_step,
    companions.incompatible_versions,
    companions.part_ignored,
    companions.part_refused,
    companions.requires_another,
    python.other_python,
    python.closed_interpreter,
    environment.other_platform,
    driver.driver_floor,
    generations.gpu_generations,
)

IMAGE_RULES: tuple[Rule[ImageCase], ...] = (
    environment.hidden_devices,
    driver.driver_without_gpu,
    driver.driver_of_toolkit,
    driver.own_driver_library,
    driver.base_requires_cuda,
    duplicates.duplicate_module,
    duplicates.shadowed_distribution,
    companions.fails_in_use,
    image.mixed_cuda_wheels,
    image.mixed_installers,
    image.architecture,
    image.old_glibc,
    image.framework_elsewhere,
    image.environment_unknown,
    image.disputed_layers,
    image.user_site,
    image.no_framework,
    generations.toolkit_without_framework,
    generations.other_software,
    python.packages_of_root,
    network.nccl_network,
    network.nccl_rdma_disabled,
)
