"""Where cluster profiles are found, and which cluster is meant: the user's own words come before the site's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.scheduler.profile_file import NAME, load_profile
from toolkit.support.errors import WrongInput
from toolkit.support.paths import shipped, site_path, user_path
from toolkit.support.settings import load_settings, settings_path
from toolkit.support.site import load_site
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from toolkit.scheduler.profiles import Profile
    from toolkit.support.settings import Settings
    from toolkit.support.site import Site

OWN = Path("sbatch/clusters")
_OF_LAB = "ctk-profiles"  # next to the slurm.conf of a practice cluster


@dataclass(frozen=True, slots=True)
class Place:
    """A directory of profiles, and whose it is (`lab`, `here`, `user`, `site`, `shipped`)."""

    directory: Path
    owner: str


@dataclass(frozen=True, slots=True)
class Profiles:
    """The directories of profiles, nearest first: a profile hides those of the same name in later directories."""

    places: tuple[Place, ...]

    @classmethod
    def here(cls, site: Site | None = None) -> Profiles:
        """Those that a command in the current directory sees. Raises WrongInput for an invalid file of the site."""
        site = site or load_site()
        own, ours = OWN.absolute(), shipped("sbatch") / "clusters"
        users = settings_path()
        found = [Place(lab.parent, "lab")] if (lab := lab_profile()) else []
        found += [] if own.resolve() == ours.resolve() else [Place(own, "here")]  # in a checkout of ctk
        found += [Place(users.parent / "clusters", "user")] if users else []
        if site.profiles is not None:
            directory = site_path(site.profiles.value, "profiles", site.profiles.origin)
            found.append(Place(directory, "site"))
        return cls((*found, Place(ours, "shipped")))

    def paths(self) -> dict[str, tuple[Path, str]]:
        """Each profile's file and the owner of its directory, by its name."""
        found: dict[str, tuple[Path, str]] = {}
        for place in self.places:
            for path in sorted(place.directory.glob("*.toml")):
                if NAME.fullmatch(path.stem):
                    found.setdefault(path.stem, (path, place.owner))
        return dict(sorted(found.items()))

    def is_of_site(self, path: Path) -> bool:
        """Whether the profile `path` is of the site, or comes with ctk: an administrator answers for it."""
        return any(place.directory == path.parent for place in self.places if place.owner in ("site", "shipped"))

    def profile(self, name: str, *, origin: str | None = None) -> Profile:
        """The profile `name`: a name, or the path of a file. `origin` is the file that names it, for an error."""
        if name.endswith(".toml") or "/" in name:
            path = user_path(name)
            if not NAME.fullmatch(path.stem):
                raise WrongInput(
                    f"{path.name} is not a valid file name of a cluster profile",
                    fix="Use lower-case letters, digits, dots, hyphens and underscores: my-cluster.toml",
                )
            return load_profile(path)
        paths = self.paths()
        if name not in paths:
            where = f"{origin}: cluster: " if origin else ""
            raise WrongInput(
                f'{where}there is no cluster profile "{name}".{did_you_mean(name, paths)}',
                fix="`ctk cluster list` shows the profiles. On the login node of a cluster, "
                "`ctk cluster detect NAME` writes one.",
                code="unknown-cluster",
            )
        return load_profile(paths[name][0])


def lab_profile() -> Path | None:
    """The profile of the practice cluster that SLURM_CONF names (`ctk lab env`); None for any other cluster."""
    settings = os.environ.get("SLURM_CONF")
    return next(iter(sorted((Path(settings).parent / _OF_LAB).glob("*.toml"))), None) if settings else None


@dataclass(frozen=True, slots=True)
class Choice:
    """The name of the cluster that a job is for, and the file that chose it; None: the command line did."""

    name: str
    origin: str | None = None


def choose(named: str | None, recipe: Choice | None, lab: Path | None, settings: Settings, site: Site) -> Choice | None:
    """The cluster that the command line names, else the recipe, `ctk lab env`, the user's settings or the site.

    None: nobody does. `lab` is the profile of the practice cluster that Slurm's programs use here.
    """
    if named is not None:
        return Choice(named)
    if recipe is not None:
        return recipe
    if lab is not None:
        return Choice(lab.stem, str(lab))
    if settings.cluster is not None:
        return Choice(settings.cluster.value, settings.cluster.origin)
    return Choice(site.cluster.value, site.cluster.origin) if site.cluster is not None else None


def chosen(named: str | None, recipe: Choice | None = None) -> tuple[Choice, Profile] | None:
    """The cluster that is meant here, and its profile; None if nobody names one. Raises WrongInput if it is invalid."""
    site = load_site()
    choice = choose(named, recipe, lab_profile(), load_settings(), site)
    return None if choice is None else (choice, Profiles.here(site).profile(choice.name, origin=choice.origin))


def chosen_profile(named: str | None, recipe: Choice | None = None) -> Profile | None:
    """The profile of the cluster that is meant here; None if nobody names one. Raises WrongInput if it is invalid."""
    found = chosen(named, recipe)
    return None if found is None else found[1]
