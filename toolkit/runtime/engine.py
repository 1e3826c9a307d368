"""The container runtime of this host: its name, its version and the options for this host."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.runtime.options import ZSTD, exec_arguments, image_argument, packing_limits, step_arguments
from toolkit.support.errors import MissingOnHost
from toolkit.support.namespace import root_needs_userns
from toolkit.support.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.support.site import Site

_OLDEST = {"apptainer": (1, 0), "singularity": (3, 8)}
NAMES = ("apptainer", "singularity")
_INSTALL = (
    "Load the site's module (`module load apptainer`), or ask the administrator; on your own Debian "
    "or Ubuntu machine, `make demo` in a ctk checkout shows how to install it."
)


# `build --authfile`: seen in Apptainer 1.4.5; SingularityCE has it from 4.1 (its pull request 2238).
_AUTHFILE = {"apptainer": (1, 4), "singularity": (4, 1)}
# From when on `--no-mount` takes the path of a bind of the configuration: tried with Apptainer 1.4.5 only.
_BY_PATH = {"apptainer": (1, 1), "singularity": (3, 10)}


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options for writing an image.

    `compression`: zstd packs a 3 GB image in a tenth of gzip's time to 1% more bytes, and needs Linux 4.14 where the
    image is mounted; gzip is for older kernels. `cores` limits packing, for login nodes; None uses all. `memory`
    (bytes) does so, too; None leaves it to mksquashfs: a quarter of the host's. `layered` is the form that was asked
    for, None if ctk chooses.
    """

    sandbox: bool = False
    compression: str = "zstd"
    cores: int | None = None
    layered: bool | None = None
    memory: int | None = None

    @classmethod
    def of_site(cls, site: Site) -> BuildOptions:
        """The options with the limits that the site sets for packing."""
        cores, memory = (setting.value if setting else None for setting in (site.cores, site.memory))
        return cls(cores=cores, memory=memory)


@dataclass(frozen=True, slots=True)
class Runtime:
    """A usable runtime. `product` is from its version output: a link named singularity may point to apptainer.

    `needs_userns`: this process is root but lacks capabilities (as in a container or a small virtual machine), so
    that the runtime works only in its own user namespace.
    """

    program: Path
    product: str
    version: tuple[int, ...]
    needs_userns: bool = False

    @property
    def version_text(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"

    def exec(
        self,
        image: Path,
        command: Sequence[str],
        *,
        gpu: bool,
        rocm: bool = False,
        isolated: bool = False,
        binds: Iterable[str] = (),
        writable: bool = False,
        directory: str | None = None,
    ) -> list[str]:
        """The command line that runs `command` in `image`; `writable` opens a sandbox for changes, with fakeroot."""
        arguments = exec_arguments(
            image_argument(image),
            command,
            gpu=gpu,
            rocm=rocm,
            isolated=isolated,
            binds=binds,
            userns=self.needs_userns and not writable,
            writable=writable,
            fakeroot=writable,
            directory=directory,
        )
        return [str(self.program), *arguments]

    def try_out(self, image: Path, overlay: Path, command: Sequence[str], binds: Iterable[str] = ()) -> list[str]:
        """The command line that runs `command` as root of `image`, with all changes in the directory `overlay`."""
        place = image_argument(image)
        arguments = exec_arguments(place, command, gpu=False, binds=binds, directory="/", overlay=str(overlay))
        return [str(self.program), *arguments]

    def step(self, tree: Path, command: Sequence[str], *, binds: Iterable[str] = ()) -> list[str]:
        """The command line that runs `command` as a step of a build, in the tree that is mounted at `tree`.

        It has to be run by root of the user namespace in which the tree is mounted (`toolkit.support.overlay`).
        """
        return [
            str(self.program),
            *step_arguments(str(tree), command, binds=binds, hidden=self._hidden, mounted=True),
        ]

    def read_only_step(
        self, image: Path, command: Sequence[str], *, lowers: Sequence[Path] = (), binds: Iterable[str] = ()
    ) -> list[str]:
        """The command line that runs `command` as a step of a build which can change nothing.

        `lowers` are layers over the image, the lowest first.
        """
        layers = [image_argument(lower) for lower in lowers]
        arguments = step_arguments(image_argument(image), command, lowers=layers, binds=binds, hidden=self._hidden)
        return [str(self.program), *arguments]

    @property
    def _hidden(self) -> list[str]:
        """What a container gets of this host, and `%post` does not."""
        return ["hostfs", "cwd", *(["/etc/localtime"] if self.version >= _BY_PATH[self.product] else [])]

    def build(
        self,
        output: Path,
        source: str,
        options: BuildOptions,
        binds: Iterable[str] = (),
        *,
        login: Path | None = None,
    ) -> list[str]:
        """The command line that builds `output` from `source`: a definition, a sandbox, or a reference with scheme.

        `login` is a file with logins at registries, in the format of Docker's config.json.
        """
        arguments = ["build"]
        if os.geteuid() != 0 or self.needs_userns:
            arguments.append("--fakeroot")
        if options.sandbox:
            arguments.append("--sandbox")
        elif packing := self._packing(options):
            arguments += ["--mksquashfs-args", packing]
        for bind in binds:
            arguments += ["--bind", bind]
        if login is not None and self.version >= _AUTHFILE[self.product]:
            arguments += ["--authfile", str(login)]
        return [str(self.program), *arguments, str(output), source]

    def _packing(self, options: BuildOptions) -> str:
        # Apptainer 1.4.0 brought --mksquashfs-args; before it, and in SingularityCE, the runtime decides alone.
        if self.product != "apptainer" or self.version < (1, 4):
            return ""
        words = [] if options.compression == "gzip" else list(ZSTD)
        return " ".join([*words, *packing_limits(options.cores, options.memory)])

    def add_json(self, image: Path, document: Path) -> list[str]:
        """The command line that adds a JSON file to a SIF, in the object group that signing covers.

        Data type 6 is generic JSON, group 1 that of the root file system (`apptainer sif add --help`). Apptainer 1.4.5
        leaves the object nameless unless --filename is given, whatever its help says.
        """
        what = ["--datatype", "6", "--groupid", "1", "--filename", document.name]
        return [str(self.program), "sif", "add", *what, str(image), str(document)]


def find_runtime(site: Site) -> Runtime:
    """The site's runtime, else apptainer, else singularity. Raises MissingOnHost if none is usable."""
    names = (site.runtime.value,) if site.runtime else NAMES
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        origin = f" (set by {site.runtime.origin})" if site.runtime else ""
        raise MissingOnHost(f"there is no {' or '.join(names)} on this host{origin}", fix=_INSTALL, code="no-runtime")
    done = run([program, "--version"], timeout=30).require("asking the container runtime for its version")
    product, version = parse_version(done.stdout)
    if version < _OLDEST[product]:
        wanted = ".".join(map(str, _OLDEST[product]))
        raise MissingOnHost(
            f"{program} is {product} {'.'.join(map(str, version))}; ctk needs {wanted} or newer", fix=_INSTALL
        )
    return Runtime(Path(program), product, version, needs_userns=root_needs_userns())


def parse_version(text: str) -> tuple[str, tuple[int, ...]]:
    """('apptainer', (1, 4, 5)) from `apptainer version 1.4.5`; SingularityCE says `singularity-ce version 4.1.0`.

    Raises MissingOnHost if the text is something else.
    """
    match = re.match(r"(apptainer|singularity)(?:-ce|-pro)? version v?(\d+(?:\.\d+)*)", text.strip())
    if not match:
        raise MissingOnHost(f"cannot parse the version of the container runtime: {text.strip()!r}")
    return match[1], tuple(int(part) for part in match[2].split("."))
