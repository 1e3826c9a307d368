"""What of the user's environment reaches a container that is not isolated."""

from __future__ import annotations

from pathlib import Path

from tests.inventory.making import fill
from toolkit.gpu.user_environment import UserEnvironment, judge_environment, user_environment


def test_variables_that_decide_are_named_with_their_origin() -> None:
    environ = {
        "PYTHONPATH": "/mine",
        "LD_LIBRARY_PATH": "/not/passed",
        "APPTAINERENV_LD_PRELOAD": "/x.so",
        "SINGULARITYENV_CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        "PYTHONHOME": "",
        "CUDA_VISIBLE_DEVICES": "0",
        "EDITOR": "vi",
    }
    found = user_environment(environ, Path("/nonexistent"), ["jax"], ["JAX_PLATFORMS"])
    assert found.variables == (
        ("PYTHONPATH", "/mine", "PYTHONPATH"),
        ("LD_PRELOAD", "/x.so", "APPTAINERENV_LD_PRELOAD"),
        ("CUDA_VISIBLE_DEVICES", "", "SINGULARITYENV_CUDA_VISIBLE_DEVICES"),
        ("JAX_PLATFORMS", "cpu", "JAX_PLATFORMS"),
    )
    assert [finding.code for finding in judge_environment(found)] == ["user-variable"] * 4


def test_packages_of_the_user_that_shadow_a_framework(tmp_path: Path) -> None:
    site = tmp_path / ".local/lib/python3.11/site-packages"
    fill(site, {"torch/__init__.py": "", "numpy.py": "", "torchvision/__init__.py": ""})
    found = user_environment({}, tmp_path, ["torch", "numpy", "jax"])
    assert found.shadows == ((str(site), ("torch", "numpy")),)
    (finding,) = judge_environment(found)
    assert (finding.code, f"{site} has torch, numpy" in finding.message) == ("user-site-shadows", True)
    assert user_environment({}, tmp_path, ["jax"]) == UserEnvironment()


def test_preloaded_library_of_the_host_reaches_the_container() -> None:
    found = user_environment({"LD_PRELOAD": "/x.so", "LD_LIBRARY_PATH": "/y"}, Path("/nonexistent"), [])
    assert found.variables == (("LD_PRELOAD", "/x.so", "LD_PRELOAD"),)
    (finding,) = judge_environment(found)
    assert "load libraries from there" in finding.message
