"""From an opened image to its inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.inventory.contents.distributions import read_distributions
from toolkit.inventory.contents.environment import read_environment
from toolkit.inventory.contents.interpreters import find_interpreters
from toolkit.inventory.contents.model import Inventory
from toolkit.inventory.contents.system import read_architecture, read_conda, read_dpkg, read_glibc, read_os

if TYPE_CHECKING:
    from toolkit.inventory.formats.rootfs import Rootfs


def read_inventory(rootfs: Rootfs) -> Inventory:
    """All that an image holds. Raises WrongInput (code `corrupt-image`) if it is damaged."""
    environment, uncertain = read_environment(rootfs)
    system_packages = read_dpkg(rootfs)
    versions = {package.name: package.version for package in system_packages}
    interpreters = find_interpreters(rootfs, environment, versions)
    directories = dict.fromkeys(directory for interpreter in interpreters for directory in interpreter.site_directories)
    prefixes = dict.fromkeys(interpreter.prefix for interpreter in interpreters if interpreter.origin == "conda")
    return Inventory(
        image=rootfs.label,
        form=rootfs.form,
        architecture=read_architecture(rootfs, tuple(interpreter.path for interpreter in interpreters)),
        glibc=read_glibc(rootfs),
        os=read_os(rootfs),
        environment=tuple(sorted(environment.items())),
        interpreters=tuple(interpreters),
        distributions=tuple(
            distribution for directory in directories for distribution in read_distributions(rootfs, directory)
        ),
        system_packages=tuple(system_packages),
        conda_packages=tuple(package for prefix in prefixes for package in read_conda(rootfs, prefix)),
        uncertain=uncertain,
    )
