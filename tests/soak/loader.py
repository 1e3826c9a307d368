"""Frameworks of full size, loaded by the real ld.so in a container and by the audit's reading of the same directory.

`python -m tests.soak.loader` unpacks the wheels of each set (gigabytes, one set at a time) into a sandbox of Debian 12.
As they are, and once with each of some libraries taken away, a Python in the container loads what an import loads, with
a stand-in for libcuda, and opens by name what the framework opens, from a library with the search path of the real
opener. The names that it does not find must be those that the audit calls missing. The architectures of torch that the
audit reads must be those that `_cuda_getArchFlags()` returns, in every release that `tests.real.torch_wheels` recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.torch_wheels import recorded
from toolkit.gpu.gather import gather_image_facts
from toolkit.inventory.formats.images import open_image
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gpu.facts import FrameworkFacts

_SITE = "usr/local/lib/python3.11/dist-packages"
_STAND_IN = Path(__file__).resolve().parents[1] / "data" / "libcuda.c"
_OPENER = """
#include <dlfcn.h>
const char *open_from_here(const char *name) { return dlopen(name, RTLD_NOW) ? 0 : dlerror(); }
"""
_PROBE = r"""
import ctypes, json, re, subprocess
work = json.load(open("/ctk-probe/work.json"))
missing, flags = set(), None
def note(text):
    found = re.match(r"(?:.*/)?([^/\s]+): cannot open shared object file", text)
    missing.add(found[1] if found else text)
try:
    exec(work["first"])
    if work["first"] == "import torch":
        flags = torch._C._cuda_getArchFlags()
except (ImportError, OSError) as error:
    note(str(error))
except ValueError:  # torch does not find a wheel to preload from: what it opens is tried below
    pass
for path in work["opens"]:
    try:
        ctypes.CDLL(path)
    except OSError as error:
        note(str(error))
        listed = subprocess.run(["/lib64/ld-linux-x86-64.so.2", "--list", path], capture_output=True, text=True).stdout
        missing.update(re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE))
for opener, name in work["wants"]:
    library = ctypes.CDLL(opener)
    library.open_from_here.restype = ctypes.c_char_p
    error = library.open_from_here(name.encode())
    if error:
        note(error.decode())
# cuDNN opens its parts by name when it is first called, and fails where one is missing; LD_DEBUG says which.
call = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).cudnnGetVersion()"
for path in {line.split()[-1] for line in open("/proc/self/maps") if "/libcudnn.so." in line}:
    command = ["env", "LD_DEBUG=libs", "python3", "-c", call, path]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    if "Cannot load symbol" in said or "Could not load library" in said:
        sought = set(re.findall(r"find library=(libcudnn_\w+\.so\.\d+) ", said))
        missing.update(sought - set(re.findall(r"calling init: \S*/(libcudnn_\w+\.so\.\d+)", said)))
print(json.dumps([sorted(missing), flags]))
"""


@dataclass(frozen=True)
class WheelSet:
    """What is installed, what an import does before it loads the framework's libraries, and what is taken away."""

    name: str
    requirement: str
    first: str
    without: tuple[str, ...]


_CUDA_12 = ("libnvJitLink.so.12", "libcublasLt.so.12", "libcudart.so.12", "libcufft.so.11", "libcusparse.so.12")
_PRELOAD = "import jax_plugins.xla_cuda12 as plugin\nplugin._load_nvidia_libraries()"
SETS = (
    WheelSet(
        "torch-2.5.1", "torch==2.5.1", "import torch",
        (*_CUDA_12, "libcudnn.so.9", "libcudnn_graph.so.9", "libc10_cuda.so", "libcusolver.so.11", "libnccl.so.2"),
    ),
    WheelSet(
        "torch", "torch", "import torch",
        ("libnvJitLink.so.13", "libcublasLt.so.13", "libcudart.so.13", "libcudnn_graph.so.9", "libc10_cuda.so"),
    ),
    WheelSet("tensorflow-2.15", "tensorflow[and-cuda]==2.15.1", "", (*_CUDA_12, "libcudnn_ops_infer.so.8")),
    WheelSet("tensorflow-2.16.1", "tensorflow[and-cuda]==2.16.1", "", ("libcudart.so.12",)),
    WheelSet("jax", "jax[cuda12]", _PRELOAD, (*_CUDA_12, "libcudnn_graph.so.9", "libcupti.so.12")),
    *(
        WheelSet(f"torch-{key.split()[0]}", f"torch=={key.split()[0]}", "import torch", ())
        for key in recorded()["code"] if key.endswith(" x86_64") and key != "2.5.1 x86_64"
    ),
)  # fmt: skip


class Sandbox:
    """The sandbox of one set of wheels."""

    def __init__(self, root: Path, wheels: WheelSet) -> None:
        self._root = root
        self._wheels = wheels
        self._runtime = find_runtime(load_site())

    def difference(self) -> str | None:
        """What the real loader misses and the audit does not, or the other way round; None where they agree."""
        with open_image(self._root) as rootfs:
            (framework,) = (framework for framework in gather_image_facts(rootfs).frameworks if framework.build.gpu)
        real, flags = self._in_the_container(framework)
        by_audit = {library.want.soname for library in framework.libraries if library.path is None}
        imported = self._wheels.first == "import torch" and not real
        if (imported or flags is not None) and flags != " ".join(framework.build.architectures):
            return f"_cuda_getArchFlags() returns {flags}, the audit {' '.join(framework.build.architectures)}"
        return None if real == by_audit else f"missing for ld.so {sorted(real)}, for the audit {sorted(by_audit)}"

    def away(self, name: str) -> Iterator[None]:
        """Take every file of a name out of the site directory for a while."""
        files = [path for path in (self._root / _SITE).rglob(name) if path.is_file()]
        assert files, f"{self._wheels.name} has no {name}"
        for path in files:
            path.rename(path.with_name(f"{name}.away"))
        yield
        for path in files:
            path.with_name(f"{name}.away").rename(path)

    def _in_the_container(self, framework: FrameworkFacts) -> tuple[set[str], str | None]:
        """What the real loader misses, and what torch says of its architectures; None where the import fails."""
        with tempfile.TemporaryDirectory(prefix="ctk-probe-") as name:
            directory = Path(name)
            openers = self._openers(framework, directory)
            try:
                wants = [(openers[want.by][1], want.soname) for want in framework.build.wants]
                work = {"first": self._wheels.first, "opens": framework.build.opens, "wants": wants}
                (directory / "work.json").write_text(json.dumps(work))
                (directory / "probe.py").write_text(_PROBE)
                stand_in = ["gcc", "-shared", "-fPIC", "-o", directory / "libcuda.so.1", _STAND_IN]
                subprocess.run([*stand_in, "-Wl,-soname,libcuda.so.1"], check=True)
                probe = ["env", "LD_LIBRARY_PATH=/ctk-probe", "python3", "/ctk-probe/probe.py"]
                command = self._runtime.exec(self._root, probe, gpu=False, binds=[f"{directory}:/ctk-probe"])
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr[-2000:]
                missing, flags = json.loads(done.stdout.splitlines()[-1])
                return set(missing), flags
            finally:
                for path, _ in openers.values():
                    path.unlink()

    def _openers(self, framework: FrameworkFacts, directory: Path) -> dict[str, tuple[Path, str]]:
        """By opener, a library beside it that opens with its search path: the file, and its path in the container."""
        from elftools.elf.elffile import ELFFile

        (directory / "opener.c").write_text(_OPENER)
        made = {}
        for number, opener in enumerate(dict.fromkeys(want.by for want in framework.build.wants)):
            with Path(f"{self._root}{opener}").open("rb") as file:
                tags = list(ELFFile(file).get_section_by_name(".dynamic").iter_tags())
            kinds = {tag.entry.d_tag: getattr(tag, "rpath", None) or getattr(tag, "runpath", None) for tag in tags}
            search = kinds.get("DT_RUNPATH") or kinds.get("DT_RPATH")
            options = [f"-Wl,-rpath,{search}"] if search else []
            options += ["-Wl,--enable-new-dtags" if "DT_RUNPATH" in kinds else "-Wl,--disable-new-dtags"]
            there = f"{os.path.dirname(opener)}/libctk-opener-{number}.so"  # noqa: PTH120
            path = Path(f"{self._root}{there}")
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, directory / "opener.c", *options], check=True)
            made[opener] = (path, there)
        return made


def main() -> int:
    """Run from the command line; the exit status is 1 where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="*", help="run the sets of this name, which may hold `*`")
    chosen = parser.parse_args().only
    failed = compared = 0
    with tempfile.TemporaryDirectory(prefix="ctk-soak-", dir=os.environ.get("CTK_SOAK_DIR")) as name:
        base = _base(Path(name))
        for wheels in SETS:
            if not fnmatchcase(wheels.name, chosen):
                continue
            root = Path(name, wheels.name)
            shutil.copytree(base, root, symlinks=True)
            _install(root, wheels.requirement)
            sandbox = Sandbox(root, wheels)
            for without in (None, *wheels.without):
                started = time.monotonic()
                taken = sandbox.away(without) if without else iter((None,))
                next(taken)
                told = sandbox.difference()
                next(taken, None)
                compared += 1
                failed += told is not None
                what = f"{wheels.name}{f' without {without}' if without else ''}"
                print(f"{what}: {told or 'the same'} ({time.monotonic() - started:.1f} s)", flush=True)
            shutil.rmtree(root)
    print(f"{compared} compared, {failed} different")
    return int(failed > 0)


def _base(directory: Path) -> Path:
    """A sandbox of Debian 12 with Python, built as a user builds it."""
    (directory / "defs").mkdir()
    (directory / "defs" / "base.toml").write_text('base = "debian-12"\n')
    ctk = Path(sys.executable).with_name("ctk")
    subprocess.run([ctk, "build", "base", "-o", directory / "base.sif"], cwd=directory, check=True)
    with open_image(directory / "base.sif") as image:
        assert image.sif is not None
        offset = next(descriptor.offset for descriptor in image.sif.descriptors if descriptor.partition)
    unpack = ["unsquashfs", "-no-progress", "-quiet", "-offset", str(offset), "-dest", directory / "base"]
    subprocess.run([*unpack, directory / "base.sif"], check=True)
    return directory / "base"


def _install(root: Path, requirement: str) -> None:
    target = root / _SITE
    # Without the cache, which would keep gigabytes of every set.
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-cache", "--target", target]
    command += ["--only-binary", ":all:"]
    command += ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_31", requirement]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    sys.exit(main())
