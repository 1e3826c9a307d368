"""The chain as users see it: plain lines through a pipe, drawn on a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.gpu.links.seen import HOST, probe, working
from toolkit.cli import chain_view, output
from toolkit.cli.chain_view import show_checked
from toolkit.gpu.chain import Subject, driver_links, whole_chain
from toolkit.gpu.check import Checked
from toolkit.gpu.framework_check import FrameworkCheck, Product
from toolkit.gpu.links.model import Seen

if TYPE_CHECKING:
    import pytest

    from toolkit.gpu.probe import Probe

GOOD = FrameworkCheck("torch", True, "2.5", 1, cpu_seconds=0.05, products=(Product(0, 0.001, 0.0, True),))
BLIND = FrameworkCheck("torch", True, "2.5", reason="the build has no CUDA")


def checked(inside: Probe, *checks: FrameworkCheck) -> Checked:
    seen = Seen(HOST, inside)
    chain = whole_chain(driver_links(seen, None), [Subject("torch", "PyTorch", check) for check in checks])
    return Checked(seen, checks, chain, ())


def test_used_gpu_in_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_checked(Path("x.sif"), checked(working(), GOOD))
    assert capsys.readouterr().out.splitlines() == [
        "host: ok",
        "✓ This host has 1 GPU, driver 550.54.15.",
        "runtime: ok",
        "✓ --nv bound 2 libraries of the driver into the container.",
        "driver in the container: ok",
        "✓ From inside, the driver shows 1 GPU, CUDA up to 12.4.",
        "✓ GPU 0: Tesla V100S, compute capability 7.0, 32 GiB.",
        "framework (PyTorch): ok",
        "✓ PyTorch 2.5 can be imported and sees 1 GPU.",
        "capability (PyTorch): ok",
        "✓ PyTorch computed on GPU 0: the driver found the result in its memory (1 ms, on the CPU 50 ms).",
        "The GPU is used: PyTorch computed on it inside x.sif.",
    ]


def test_broken_link_has_its_remedy_under_it(capsys: pytest.CaptureFixture[str]) -> None:
    show_checked(Path("x.sif"), checked(probe(cuda_init=999)))
    lines = capsys.readouterr().out.splitlines()
    place = lines.index("driver in the container: broken")
    assert lines[place + 1].startswith("✗ cuInit returned 999")
    assert lines[place + 2].startswith("    Ask the administrator")
    assert lines[place + 3 : place + 5] == ["framework: not reached", "capability: not reached"]
    show_checked(Path("x.sif"), checked(working(), BLIND))
    assert capsys.readouterr().out.endswith("PyTorch in x.sif computes on the CPU.\n")


def test_chain_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, str | None]] = []
    monkeypatch.setattr(chain_view.sys.stdout, "isatty", lambda: True)
    for module in (chain_view, output):
        monkeypatch.setattr(module, "say", lambda text, *, style=None, stderr=False: said.append((text, style)))
    show_checked(Path("x.sif"), checked(probe(cuda_init=999)))
    assert ("✗ driver in the container", "bold red") in said
    assert ("│", "green") in said
    assert ("○ framework: not reached", "dim") in said
