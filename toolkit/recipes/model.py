"""Recipe and Base: the contents of an image, and what it starts from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.support.enums import StrEnum
from toolkit.support.findings import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

INSTALLERS = ("pip", "conda")
# The processors of a base, as `uname -m` names them.
ARCHITECTURES = ("x86_64", "aarch64")
LARGEST_IMAGE = 1 << 50  # bytes; a larger size is an error, or an attempt to cause one
# What a recipe can require: nobody wants an image that is broken.
REQUIRABLE = (Verdict.GPU_READY, Verdict.CPU_ONLY, Verdict.NO_FRAMEWORK)


class Bootstrap(StrEnum):
    """The bootstrap agent of a base, as in a definition's `Bootstrap:`."""

    DOCKER = "docker"
    LOCALIMAGE = "localimage"
    DOCKER_ARCHIVE = "docker-archive"
    OCI = "oci"
    DEBOOTSTRAP = "debootstrap"


class DigestOf(StrEnum):
    """What the digest of a base names: the manifest of one platform, or the index of all."""

    IMAGE = "image"
    INDEX = "index"


class Evidence(StrEnum):
    """How well the digest of a base is known: from independent sources or the image's vendor, or from one source."""

    CONFIRMED = "confirmed"
    SINGLE = "single"


class IndexKind(StrEnum):
    """A package index of PEP 503, or a page that links to files."""

    INDEX = "index"
    FIND_LINKS = "find-links"


@dataclass(frozen=True, slots=True)
class Base:
    """An image to start from. Unknown values are None or (), never guessed.

    `reference` is what the definition's `From:` says (for debootstrap the suite, `bookworm`); `digest` is
    `sha256:…` of the registry's manifest, `inrelease` that of a suite's InRelease; `evidence` tells how well it is
    known and `checked` (ISO) when that was read. `framework` is the name of its distribution. `cuda` and `rocm` are
    the toolkit's version, `driver` is the oldest NVIDIA driver, `size` is in bytes and compressed. `code` is what
    the framework's build has for GPUs: binary code (sm_80) and PTX (compute_80). `runs_on` are compute capabilities of
    GPUs on which it is known to run, where `code` is not known. `source` says where the facts come from. `apt` are
    packages that a debootstrap base brings from the first moment. `broken` is why the base does not work.
    """

    name: str
    bootstrap: Bootstrap
    reference: str
    digest: str | None = None
    python: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    cuda: str | None = None
    installer: str = "pip"
    apt: tuple[str, ...] = ()
    description: str = ""
    source: str = ""
    inrelease: str | None = None
    digest_of: DigestOf | None = None
    evidence: Evidence | None = None
    checked: str | None = None
    family: str | None = None
    python_path: str | None = None
    cudnn: str | None = None
    rocm: str | None = None
    os: str | None = None
    glibc: str | None = None
    architectures: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    runs_on: tuple[str, ...] = ()
    driver: str | None = None
    size: int | None = None
    broken: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether the base is a file or a directory of this machine, which has no address elsewhere."""
        return self.bootstrap in (Bootstrap.LOCALIMAGE, Bootstrap.DOCKER_ARCHIVE, Bootstrap.OCI)

    @property
    def path(self) -> Path:
        """The path of a base on this machine; `reference` of an archive may name an image in it after a colon."""
        return Path(self.reference if self.bootstrap == Bootstrap.LOCALIMAGE else self.reference.partition(":")[0])

    @property
    def pinned_reference(self) -> str:
        """The reference by digest, if known, so that a moved tag has no effect."""
        if self.digest is None or self.bootstrap != Bootstrap.DOCKER:
            return self.reference
        repository, colon, tag = self.reference.rpartition(":")
        # The colon of `localhost:5000/image` belongs to the host.
        return f"{repository if colon and '/' not in tag else self.reference}@{self.digest}"


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file or directory of this host that is copied into the image. `source` is absolute.

    Whether it is there matters only when the image is built: a job needs the recipe on hosts that lack it.
    """

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Index:
    """A package index beside PyPI or a page that links to files. The address holds no credentials.

    `packages` are the only ones that it is asked for, and they come from nowhere else; () means that it is asked for
    all of them, before PyPI is.
    """

    name: str
    url: str
    packages: tuple[str, ...] = ()
    kind: IndexKind = IndexKind.INDEX


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """The defaults of a job of this recipe. `command` is an argument list.

    `resources` are values as they were written, by the keys of `toolkit.scheduler.resources.OPTIONS`. `cluster` names
    a cluster profile.
    """

    command: tuple[str, ...] = ()
    resources: Mapping[str, int | str] = field(default_factory=dict)
    binds: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The machines that an image is for: GPU types and NVIDIA driver as the user names them, architectures as `uname`.

    No architecture means that of the host. `origin` says who names them, if the recipe does not (`cluster mine`);
    `drivers` are then those of the GPUs, in their order.
    """

    gpus: tuple[str, ...] = ()
    driver: str | None = None
    architectures: tuple[str, ...] = ()
    origin: str = field(default="", compare=False)
    drivers: tuple[str | None, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The contents of an image. `path` is the TOML file it was read from.

    `packages` are direct Python requirements (PEP 508), `post` is a shell script that runs after they are installed,
    `verdict` is the audit verdict that the build requires, or None. `import_skip` are packages (normalised
    names) that the build does not import at its end. `rebased`: `base` is not the one that the file names
    (`--base`), so that the lock in `./defs` is not for it. `group` is the heading under which `ctk list` shows it.
    `prefer` are exact versions, `name==version` with an optional marker, that a lock takes where it can.
    `text` is the content of the file. `not_secret` are names of values that ctk must not refuse as secrets.
    `check` is a command that has to succeed at the end of the build.
    """

    name: str
    path: Path
    base: Base
    description: str = ""
    apt: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    post: str = ""
    files: tuple[FileCopy, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    job: JobDefaults = field(default_factory=JobDefaults)
    verdict: Verdict | None = None
    indexes: tuple[Index, ...] = ()
    import_skip: tuple[str, ...] = ()
    target: Target = field(default_factory=Target)
    prefer: tuple[str, ...] = ()
    rebased: bool = False
    group: str = ""
    not_secret: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    text: str = field(default="", repr=False, compare=False)

    @property
    def needs_guard(self) -> bool:
        """Whether the build installs something over the base, which the guard compares, or has a check that it runs."""
        return bool(self.apt or self.packages or self.post.strip() or self.check)
