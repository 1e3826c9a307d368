"""The catalogue of recipes and bases: the user's `./defs` first, then the shipped ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.recipes.bases import bases_in
from toolkit.recipes.fields import NAME, NAME_HINT
from toolkit.support.errors import WrongInput
from toolkit.support.files import refuse_link, write_atomically
from toolkit.support.paths import shipped
from toolkit.support.text import did_you_mean

if TYPE_CHECKING:
    from toolkit.recipes.model import Base, Recipe


def is_recipe_name(name: str) -> bool:
    """Whether NAME.toml in a directory of recipes is one: neither the bases nor a lock."""
    return NAME.fullmatch(name) is not None and name != "bases" and not name.endswith(".lock")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The directories that hold recipes, nearest first."""

    own: Path
    shipped: Path

    @classmethod
    def here(cls) -> Catalogue:
        """The catalogue that a command in the current directory sees."""
        return cls(Path("defs").absolute(), shipped("defs"))

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where recipes are looked for; in a checkout of ctk the user's directory is the shipped one."""
        return (self.own,) if self.own.resolve() == self.shipped.resolve() else (self.own, self.shipped)

    def is_own(self, path: Path) -> bool:
        """Whether a recipe's file is the user's own, not one that came with ctk."""
        return path.parent.resolve() != self.shipped.resolve()

    def paths(self) -> dict[str, Path]:
        """Each recipe's name and file; an own recipe hides a shipped one of the same name."""
        found: dict[str, Path] = {}
        for directory in self.directories:
            for path in sorted(directory.glob("*.toml")):
                if is_recipe_name(path.stem):
                    found.setdefault(path.stem, path)
        return dict(sorted(found.items()))

    def bases(self) -> dict[str, Base]:
        """Each base by its name; own files add to the shipped ones and may replace entries."""
        found: dict[str, Base] = {}
        for directory in reversed(self.directories):
            found.update(bases_in(directory))
        return found

    def path_of(self, name: str) -> Path:
        """The recipe's file. Raises WrongInput with the closest name if there is none."""
        paths = self.paths()
        if name in paths:
            return paths[name]
        if name.endswith(".toml") and name[: -len(".toml")] in paths:
            raise WrongInput(f"{name!r} is a recipe file; the recipe's name is {name[: -len('.toml')]}")
        if name and Path(name).is_dir():
            raise WrongInput(f'there is no recipe "{name}"', fix=f"To name a directory, end it with a slash: {name}/")
        if not NAME.fullmatch(name):
            raise WrongInput(f"{name!r} is not a recipe name: {NAME_HINT}", fix="`ctk list` shows the recipes.")
        fix = self._above(name) or "`ctk list` shows the recipes."
        raise WrongInput(f'there is no recipe "{name}".{did_you_mean(name, paths)}', fix=fix)

    def _above(self, name: str) -> str | None:
        """The advice for a recipe of a directory above, which is never used from here; None if there is none."""
        file = f"{self.own.name}/{name.removesuffix('.toml')}.toml"
        for number, directory in enumerate(self.own.parent.parents, 1):
            if os.path.isfile(directory / file):  # noqa: PTH113 - Path.is_file raises where no search is permitted
                above = "/".join([".."] * number)
                return f"There is {above}/{file}: run `ctk` in {above}"
        return None

    def recipe(self, name: str, *, base: Base | None = None, bases: dict[str, Base] | None = None) -> Recipe:
        """The recipe of that name, on its own base or on `base`. `bases` spares reading them again."""
        from toolkit.recipes.load import load_recipe

        if base is None and bases is None:
            bases = self.bases()
        return load_recipe(self.path_of(name), bases or {}, base=base)

    def own_copy(self, name: str) -> Path:
        """The path of a user's own file of recipe `name`; a shipped one is copied to `./defs` first.

        Files that the recipe copies into the image come along, so that its relative paths stay right.
        """
        from toolkit.recipes.copies import copy_files

        path = self.path_of(name)
        if path.parent == self.own:
            return path
        recipe = self.recipe(name)
        copies = {copy.source: self.own / copy.source.relative_to(path.parent) for copy in recipe.files}
        own = self.own / path.name
        refuse_link(own)
        kept = {source for source, target in copies.items() if target.exists() and not target.is_symlink()}
        copy_files({source: copies[source] for source in copies if source not in kept}, path.parent, self.own)
        self.own.mkdir(exist_ok=True)
        write_atomically(own, path.read_bytes())
        return own
