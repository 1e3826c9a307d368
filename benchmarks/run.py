"""Run the benchmarks and write their figures to benchmarks/RESULTS.md: `python -m benchmarks.run [NAME...]`."""

from __future__ import annotations

import datetime
import importlib
import os
import pkgutil
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import benchmarks
from toolkit.support.files import write_atomically

if TYPE_CHECKING:
    from benchmarks.section import Section

_RESULTS = Path(__file__).with_name("RESULTS.md")


def main(wanted: list[str]) -> int:
    """Run the named benchmarks, or all. Only a run of all is written down: figures of one run belong together.

    The exit status is 1 where a target was missed, 2 where a name is not that of a benchmark.
    """
    known = find()
    unknown = set(wanted) - set(known)
    if unknown:
        print(f"There is no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    sections = []
    for name in wanted or known:
        print(f"bench: {name}", file=sys.stderr, flush=True)
        sections.append(importlib.import_module(f"benchmarks.{name}").run())
    text = document(sections)
    print(text)
    if not wanted:
        write_atomically(_RESULTS, text)
    return 0 if all(target.met for section in sections for target in section.targets) else 1


def find() -> list[str]:
    """The modules of this directory that have a function `run() -> Section`, by name."""
    names = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "run"]
    return [name for name in names if hasattr(importlib.import_module(f"benchmarks.{name}"), "run")]


def document(sections: list[Section]) -> str:
    """The page: when, where, and what came out."""
    head = (
        "# Benchmark results\n\n"
        f"Written by `make bench` on {datetime.date.today():%Y-%m-%d}; benchmarks/README.md says how.\n\n"
        f"Machine: {_machine()}."
    )
    return "\n\n".join([head, *(section.markdown() for section in sections)]) + "\n"


def replace_section(section: Section) -> None:
    """Write one section's figures into the page, where the others stay as they are; a new one goes to the end."""
    page = _RESULTS.read_text(encoding="utf-8")
    start = page.find(f"\n## {section.title}\n")
    start = len(page) if start < 0 else start + 1
    end = page.find("\n## ", start)
    after = page[end + 1 :] if end >= 0 else ""
    parts = [page[:start].rstrip("\n"), section.markdown(), after.rstrip("\n")]
    write_atomically(_RESULTS, "\n\n".join(filter(None, parts)) + "\n")


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {system}, "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
