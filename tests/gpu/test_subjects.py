"""What the audit tells the check: which frameworks, and whether they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.gpu import small_images
from tests.gpu.links.seen import HOST, probe, working
from tests.inventory.making import fill, python_files
from toolkit.gpu.host import HostGpu
from toolkit.gpu.links.model import Seen
from toolkit.gpu.subjects import audit_for, modules_and_variables, read_facts, subjects_of

if TYPE_CHECKING:
    from pathlib import Path


def image(directory: Path, *parts: small_images.Files) -> Path:
    for part in (python_files(), *parts):
        fill(directory, part)
    return directory


def test_frameworks_with_a_gpu_build_come_before_others(tmp_path: Path) -> None:
    facts, doubt = read_facts(image(tmp_path, small_images.torch(), small_images.jax()))
    assert facts is not None
    assert doubt == ()
    audit = audit_for(facts, Seen(HOST, working(driver="550.54.15")))
    assert [subject.name for subject in subjects_of(audit, None)] == ["torch"]
    (named,) = subjects_of(audit, "jax")
    assert (named.title, named.audit is not None) == ("JAX", True)
    (absent,) = subjects_of(audit, "cupy")
    assert (absent.title, absent.audit) == ("CuPy", None)
    modules, variables = modules_and_variables(audit)
    assert set(modules) == {"torch", "jax", "numpy"}
    assert "JAX_PLATFORMS" in variables


def test_cpu_build_is_checked_if_there_is_nothing_else(tmp_path: Path) -> None:
    facts, _ = read_facts(image(tmp_path, small_images.jax()))
    assert facts is not None
    assert [subject.name for subject in subjects_of(audit_for(facts, Seen(HOST, working())), None)] == ["jax"]


def test_driver_of_the_probe_or_the_host_goes_back_to_the_audit(tmp_path: Path) -> None:
    facts, _ = read_facts(image(tmp_path, small_images.torch()))
    assert facts is not None
    for host, driver in ((HOST, "470.42.01"), (HostGpu("470.42.01", ()), None)):
        codes = {finding.code for finding in audit_for(facts, Seen(host, working(driver=driver))).findings}
        assert "driver-too-old" in codes
    odd = audit_for(facts, Seen(HOST, probe(driver="a new form")))
    assert "driver-too-old" not in {finding.code for finding in odd.findings}


def test_unreadable_image_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "x.sif").write_text("nothing")
    facts, (finding,) = read_facts(tmp_path / "x.sif")
    assert (facts, finding.code) == (None, "image-not-audited")
    assert subjects_of(None, None) == []
    assert modules_and_variables(None) == ([], [])
