"""What is not done twice: nothing changed, one file changed, a second recipe, a build without a network.

`python -m benchmarks.store` measures it alone and writes its section of RESULTS.md.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks import buildah, charliecloud
from benchmarks.audit import torch_base
from benchmarks.layers import CA_BUNDLE, Run, measured
from benchmarks.measure import debian_12, environment_of_ctk, variables
from benchmarks.section import Section, Table, Target
from toolkit import __version__
from toolkit.runtime.engine import find_runtime
from toolkit.support.site import load_site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Rows = tuple[tuple[str, str], ...]

_ROUNDS = 5
_LIMIT = 0.5  # seconds, for an image in which nothing changed
_RATIO = 60
_DEAD_PROXY = "http://127.0.0.1:9"  # nobody answers
# The three steps of a layered build: apt, packages, files.
_RECIPE = 'base = "{base}"\napt = ["tree"]\npackages = ["six"]\n[[files]]\nfrom = "notes.txt"\nto = "/opt/notes.txt"\n'
_SMALL = 'base = "{base}"\npackages = [{packages}]\n'
_PEERS = (("buildah", "buildah", buildah.measure), ("Charliecloud", "ch-image", charliecloud.measure))
_WORDS = f"""\
A recipe with a package of `apt`, a Python package and a file, which are three layers. By hand: `apptainer build
--fakeroot` of the text that `ctk def` prints, one run. It does the same whatever has changed. ctk's figures are medians
of {_ROUNDS} runs, with the guard, the imports and the audit; a command ends when its image is on the disk (fsync).
Between two runs, `dd conv=fsync` copies the base with blocks of 1 MB, for comparison.

The base of the last table comes from a registry on this machine, which is stopped before the second recipe is built.
Offline is `ctk build --offline` in a new work area after `ctk fetch`, with proxies that do not answer."""


def run() -> Section:
    """Make the bases (kept in the cache), then measure."""
    ctk = environment_of_ctk() / "ctk"
    if CA_BUNDLE.is_file():  # plain apptainer needs the certificates of this machine; ctk finds them
        os.environ["APPTAINER_BIND"] = f"{CA_BUNDLE}"
    debian = debian_12(ctk)
    return measure(ctk, torch_base(debian), debian)


def measure(ctk: Path, large: Path, small: Path) -> Section:
    """The section, with steps over the base `large`, and all else over `small`."""
    with TemporaryDirectory(dir=os.environ.get("CTK_BENCH_TMP")) as name, variables(CTK_HOME=f"{name}/area"):
        steps, targets = _steps(ctk, large, Path(name) / "steps")
        print("bench: steps measured", file=sys.stderr, flush=True)
        registry, more = _registry(ctk, small, Path(name) / "registry")
        print("bench: registry measured", file=sys.stderr, flush=True)
        peers = [_peer(title, make(large, Path(name) / program), large) for title, program, make in _installed()]
    load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
    words = f"Load averages of 1, 5 and 15 minutes at the end: {load}, on {os.cpu_count()} cores."
    return Section(
        "The store",
        f"{_WORDS}\n\n{_peers()}\n\n{words}",
        (steps, *peers, registry),
        (*targets, *more),
        (f"ctk {__version__}", find_runtime(load_site()).version_text),
    )


def _steps(ctk: Path, base: Path, work: Path) -> tuple[Table, list[Target]]:
    """The first build, that of nothing, and that of the last step, with plain apptainer."""
    (work / "defs").mkdir(parents=True)
    (work / "defs/bench.toml").write_text(_RECIPE.format(base=base))
    build: list[str | Path] = [ctk, "build", "bench", "--layered"]
    copy: list[str | Path] = ["dd", f"if={base}", f"of={work}/copy", "bs=1M", "status=none", "conv=fsync"]
    files, nothing, copies = [], [], []
    for number in range(_ROUNDS + 1):
        (work / "defs/notes.txt").write_text(f"{number}\n")
        files.append(measured(build, work))
        nothing.append(measured(build, work))
        copies.append(measured(copy, work))
        (work / "copy").unlink()
    first, files = files[0], files[1:]
    text = subprocess.run([ctk, "def", "bench"], cwd=work, check=True, capture_output=True, text=True).stdout
    (work / "hand.def").write_text(text)
    by_hand = measured(["apptainer", "build", "--force", "--fakeroot", "hand.sif", "hand.def"], work)
    last, unchanged, copied = _median(files), _median(nothing), _median(copies[1:])
    rows = [
        _row("the first build", first.seconds, by_hand.seconds),
        _row("one file of the last step changed", last, by_hand.seconds),
        _row("nothing changed", unchanged, by_hand.seconds),
        _row("`dd conv=fsync` of the base", copied, by_hand.seconds),
    ]
    size = base.stat().st_size / 1e9
    table = Table(
        f"A base of {size:.2f} GB, three steps", ("build", "ctk, s", "by hand, s", "by hand ÷ ctk"), tuple(rows)
    )
    ratio = by_hand.seconds / last
    words = (
        f"one file of the last of three steps changed: at least {_RATIO} times as fast as by hand: {ratio:.1f} times"
    )
    return table, [
        Target(f"nothing changed takes less than {_LIMIT} s: {unchanged:.2f} s", unchanged < _LIMIT),
        Target(words, ratio >= _RATIO),
    ]


def _registry(ctk: Path, base: Path, work: Path) -> tuple[Table, list[Target]]:
    """Two recipes over a base of a registry, and one of them without a network."""
    work.mkdir(parents=True)
    (work / "defs").mkdir()
    seconds: dict[str, float] = {}
    with _served(base, work) as reference:
        for name, packages in (("one", '"six"'), ("two", '"six", "tabulate"')):
            (work / f"defs/{name}.toml").write_text(_SMALL.format(base=f"docker://{reference}", packages=packages))
        seconds["the first recipe: the base is pulled"] = measured([ctk, "build", "one"], work).seconds
        subprocess.run([ctk, "lock", "two"], cwd=work, check=True, capture_output=True)
        with variables(CTK_HOME=f"{work}/other-area"):
            _succeeds([ctk, "fetch", "two"], work, seconds, "`ctk fetch` in another work area")
    second: list[str | Path] = [ctk, "build", "two"]
    pulled = _succeeds(second, work, seconds, "the second recipe, without the registry")
    (work / "two.sif").unlink(missing_ok=True)
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _DEAD_PROXY)
    with variables(CTK_HOME=f"{work}/other-area", **proxies):
        offline = _succeeds([*second, "--offline"], work, seconds, "`ctk build --offline` of what was fetched")
    rows = tuple((name, f"{taken:.1f}") for name, taken in seconds.items())
    return Table(f"A base of {base.stat().st_size / 1e9:.2f} GB from a registry", ("command", "s"), rows), [
        Target("a second recipe on the same base pulls nothing", pulled),
        Target("a build without a network works after `ctk fetch`", offline),
    ]


def _succeeds(argv: Sequence[str | Path], work: Path, seconds: dict[str, float], name: str) -> bool:
    try:
        seconds[name] = measured(argv, work).seconds
    except subprocess.CalledProcessError:
        return False
    return True


def _row(name: str, seconds: float, by_hand: float) -> tuple[str, ...]:
    return name, f"{seconds:.2f}", f"{by_hand:.1f}", f"{by_hand / seconds:.0f}"


def _median(runs: Sequence[Run]) -> float:
    return statistics.median(run.seconds for run in runs)


def _installed() -> list[tuple[str, str, Callable[[Path, Path], Rows]]]:
    return [peer for peer in _PEERS if shutil.which(peer[1])]


def _peer(title: str, rows: Rows, base: Path) -> Table:
    return Table(f"The same with {title} on {base.stat().st_size / 1e9:.2f} GB", ("command", "s"), rows)


def _peers() -> str:
    missing = " and ".join(title for title, program, _ in _PEERS if not shutil.which(program))
    return f"""\
Of the tools that cache steps, `buildah build --layers` (which is also what `podman build` runs) and `ch-image build` of
Charliecloud have a table each if they are installed{f"; {missing}: not here" if missing else ""}.
Their base is imported beforehand, and their image is no SIF: a cluster with Apptainer needs the last row, too."""


@contextlib.contextmanager
def _served(base: Path, work: Path) -> Iterator[str]:
    """The reference of an image with the files of `base`, in a registry that runs for the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    settings, layout, root = work / "registry.yml", work / "layout", work / "root"
    settings.write_text(
        f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {work}/blobs\nhttp:\n  addr: {address}\n"
    )
    buildah.unpack(base, root)
    buildah.quietly("umoci", "init", "--layout", layout)
    buildah.quietly("umoci", "new", "--image", f"{layout}:t")
    buildah.quietly("umoci", "insert", "--rootless", "--image", f"{layout}:t", root, "/")
    shutil.rmtree(root)
    with (work / "registry.log").open("w") as log:
        server = subprocess.Popen(["docker-registry", "serve", settings], stdout=log, stderr=log)
    try:
        _wait(f"http://{address}/v2/")
        reference = f"{address}/bench/debian:12"
        buildah.quietly(
            "skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci:{layout}:t", f"docker://{reference}"
        )
        yield reference
    finally:
        server.terminate()
        server.wait(10)


def _wait(address: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(address, timeout=1).close()  # noqa: S310
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(address)


if __name__ == "__main__":
    from benchmarks.run import replace_section

    section = run()
    print(section.markdown())
    replace_section(section)
