"""What an image holds, as plain values: interpreters, distributions, packages of the system and of conda."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """One installed Python distribution.

    `name` is normalized (PEP 503), `version` as its metadata says it ("2.15.0+nv24.3"). `directory` is the site
    directory that holds it, and `metadata` its `.dist-info` or `.egg-info`. `requires` holds Requires-Dist as written.
    `direct_url` is where it came from if not from an index. Without a RECORD its files are unknown.
    """

    name: str
    version: str
    directory: str
    metadata: str
    requires: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    requires_python: str | None = None
    installer: str | None = None
    direct_url: str | None = None
    has_record: bool = False


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One Python.

    `path` is its program as found (a venv's own, not the one that it links to); `version` is "3.11.2", or "3.11"
    if nothing says more. `origin` is "system", "local", "conda" or "venv". `site_directories` stand in the order of
    sys.path, PYTHONPATH of the image first. `default` marks the one that `python`, else `python3`, means in the image.
    """

    path: str
    version: str
    prefix: str
    origin: str
    site_directories: tuple[str, ...]
    default: bool = False
    free_threaded: bool = False

    @property
    def minor(self) -> str:
        """ "3.11" of 3.11.2."""
        return ".".join(self.version.split(".")[:2])

    @property
    def abi_tag(self) -> str:
        """The tag of its own ABI: cp36m, cp311, cp313t (the `m` ended with Python 3.8, PEP 3149 and bpo-36707)."""
        major, _, minor = self.minor.partition(".")
        suffix = "t" if self.free_threaded else "m" if (int(major), int(minor or 0)) < (3, 8) else ""
        return f"cp{major}{minor}{suffix}"


@dataclass(frozen=True, slots=True)
class SystemPackage:
    """A package of the system (dpkg) or of conda; `build` is conda's build string, and `prefix` its environment."""

    name: str
    version: str
    build: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """A variable whose value is known only by running `script`.

    `open` is False if every value that it may have is known: then the image's environment holds all of them.
    """

    name: str
    script: str
    open: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """All that an image holds, as far as ctk reads it.

    `architecture` is the machine that its programs are for, as uname says it ("x86_64"), None if it has no program.
    `glibc` is "2.36", None in an image without glibc. `os` is os-release's ID and VERSION_ID ("ubuntu 22.04").
    `environment` is what the image sets for its programs, `uncertain` what of it only running its scripts tells.
    """

    image: str
    form: str
    architecture: str | None
    glibc: str | None
    os: str
    environment: tuple[tuple[str, str], ...]
    interpreters: tuple[Interpreter, ...]
    distributions: tuple[Distribution, ...]
    system_packages: tuple[SystemPackage, ...]
    conda_packages: tuple[SystemPackage, ...]
    uncertain: tuple[Uncertain, ...] = ()

    def variable(self, name: str) -> str:
        """A variable of the image's environment; "" if it sets none."""
        return dict(self.environment).get(name, "")

    def doubt(self, name: str) -> Uncertain | None:
        """Why the value of a variable is uncertain; None if it is not."""
        return next((variable for variable in self.uncertain if variable.name == name), None)

    def default_interpreter(self) -> Interpreter | None:
        """The Python that the image's PATH leads to, else the first that there is."""
        return next((found for found in self.interpreters if found.default), next(iter(self.interpreters), None))

    def copies(self, interpreter: Interpreter) -> tuple[Distribution, ...]:
        """Every distribution on an interpreter's path, in the order in which it looks: a second copy comes later."""
        order = {directory: number for number, directory in enumerate(interpreter.site_directories)}
        return tuple(
            sorted(
                (found for found in self.distributions if found.directory in order),
                key=lambda found: (order[found.directory], found.name, found.version),
            )
        )

    def visible(self, interpreter: Interpreter) -> dict[str, Distribution]:
        """By name, the copy of each distribution that an interpreter finds first."""
        found: dict[str, Distribution] = {}
        for distribution in self.copies(interpreter):
            found.setdefault(distribution.name, distribution)
        return found
