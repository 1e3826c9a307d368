"""Adding packages to a base: `ctk build` compared with `apptainer build` of a definition as users write it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import Times, debian_12, environment_of_ctk, interleaved
from benchmarks.section import Section, Table
from toolkit import __version__
from toolkit.pins.guard.log import seconds_of_imports

_CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_PACKAGES = ("scikit-learn", "pandas", "matplotlib")
_ROUNDS = 3

# As in a tutorial: the base, and pip.
_BY_HAND = """\
Bootstrap: localimage
From: {base}

%post
    pip3 install --no-cache-dir --break-system-packages {packages}
"""


def run() -> Section:
    """Build the same image in both ways, in turn; the base is made once and kept."""
    ctk = environment_of_ctk()
    if _CA_BUNDLE.is_file():  # plain apptainer needs the certificates of this machine; ctk finds them
        os.environ["APPTAINER_BIND"] = str(_CA_BUNDLE)
    base = debian_12(ctk / "ctk")
    with TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "defs").mkdir()
        listed = ", ".join(f'"{package}"' for package in _PACKAGES)
        (directory / "defs/companions.toml").write_text(f'base = "debian-12"\npackages = [{listed}]\n')
        (directory / "hand.def").write_text(_BY_HAND.format(base=base, packages=" ".join(_PACKAGES)))
        commands: dict[str, list[str | Path]] = {
            "ctk build": [ctk / "ctk", "build", "companions", "--base", base, "--force", "--flat"],
            "ctk build --compression gzip": [
                *(
                    ctk / "ctk",
                    "build",
                    "companions",
                    "--base",
                    base,
                    "--force",
                    "--flat",
                    "-o",
                    "gzip.sif",
                    "--compression",
                    "gzip",
                )
            ],
            "apptainer build": ["apptainer", "build", "--force", "--fakeroot", "hand.sif", "hand.def"],
        }
        subprocess.run(commands["ctk build"], cwd=directory, check=True, capture_output=True)  # chooses the versions
        times = interleaved(commands, rounds=_ROUNDS, directory=directory)
        sizes = {name: (directory / file).stat().st_size for name, file in zip(commands, _OUTPUTS, strict=True)}
        imports = {
            name: _import_seconds(directory / f"{file}.build.log")
            for name, file in zip(commands, _OUTPUTS, strict=True)
        }
    names = ", ".join(_PACKAGES)
    return Section(
        title="Building",
        words=(
            f"{names} on a Debian 12 base with Python ({base.stat().st_size / 1e6:.0f} MB). By hand: pip "
            "as it comes, and gzip, the runtime's own choice. "
            "ctk makes a flat image (`--flat`): it installs the locked files with uv, packs with zstd, "
            "compares every protected file before and after, imports each package, and audits the image; all of that "
            "is in its time. The share of the imports is that of the last run, by the build's log. "
            "`--compression gzip` shows what zstd is worth. Both download from the package index each time."
        ),
        tables=(_table(times, sizes, imports),),
        versions=(f"ctk {__version__}", _version("apptainer")),
    )


_OUTPUTS = ("companions.sif", "gzip.sif", "hand.sif")


def _version(program: str) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def _import_seconds(log: Path) -> float | None:
    """The seconds of the import step in a build's log; None without such a step."""
    return seconds_of_imports(log.read_text(encoding="utf-8").splitlines()) if log.is_file() else None


def _share(seconds: float | None, times: Times) -> str:
    return "none" if seconds is None else f"{seconds:.1f} ({seconds / times.seconds[-1]:.0%})"


def _table(times: dict[str, Times], sizes: dict[str, int], imports: dict[str, float | None]) -> Table:
    ctk = times["ctk build"].median
    return Table(
        f"Median of {_ROUNDS} runs, in turn",
        ("command", "median, s", "fastest, s", "image, MB", "of it imports, s", "ctk ÷ this"),
        tuple(
            (
                f"`{name}`",
                f"{timing.median:.1f}",
                f"{timing.fastest:.1f}",
                f"{sizes[name] / 1e6:.0f}",
                _share(imports[name], timing),
                f"{ctk / timing.median:.2f}",
            )
            for name, timing in times.items()
        ),
    )
