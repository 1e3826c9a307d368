"""The second link: what the runtime bound."""

from __future__ import annotations

import pytest

from tests.gpu.links.seen import AMD, NOT_LOADED, V100, codes, seen
from toolkit.gpu.inside import Ending
from toolkit.gpu.links.runtime import judge_runtime
from toolkit.gpu.verdicts import GpuVerdict


def test_bound_driver_holds() -> None:
    judged = judge_runtime(seen())
    assert judged.verdict is None
    assert judged.findings[0].message == "--nv bound 2 libraries of the driver into the container."


def test_devices_prove_it_whatever_is_bound() -> None:
    assert judge_runtime(seen(bound_libraries=(), devices=(V100,))).verdict is None


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"bound_libraries": ()}, "driver-not-bound"),
        ({"bound_libraries": ("libGL.so.1",)}, "driver-not-bound"),
        ({"bound_libraries": ("libnvidia-ml.so.1",)}, "libcuda-not-bound"),
        ({"bound_libraries": (), "nvidia_smi": True}, "nvidia-smi-without-libraries"),
    ],
)
def test_driver_that_is_not_bound_breaks_it(changes: dict[str, object], code: str) -> None:
    judged = judge_runtime(seen(cuda_error=NOT_LOADED, **changes))
    assert (judged.verdict, codes(judged)) == (GpuVerdict.NOT_VISIBLE, [code])
    assert NOT_LOADED in judged.findings[0].message
    assert judged.findings[0].fix


def test_stub_of_the_image_is_named_where_nothing_is_bound() -> None:
    judged = judge_runtime(seen(bound_libraries=(), cuda_init=34, cuda_path="/usr/local/cuda/lib64/stubs/libcuda.so.1"))
    assert "/stubs/libcuda.so.1 of the image was loaded instead (cuInit returned 34)" in judged.findings[0].message


@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        (Ending(status=97), "no-python-in-image", "The image has no Python"),
        (Ending(status=139), "python-fails", "ended by SIGSEGV"),
        (
            Ending(status=1, lines=("ImportError: _ctypes",)),
            "python-fails",
            "status 1 before it could query the driver. Its",
        ),
        (Ending(status=143, seconds=5), "python-fails", "ended by ctk after 5 s"),
    ],
)
def test_image_that_cannot_ask_leaves_it_open(ending: Ending, code: str, words: str) -> None:
    judged = judge_runtime(seen(python=None, bound_libraries=(), ending=ending))
    assert (judged.verdict, codes(judged)) == (GpuVerdict.NOT_KNOWN, [code])
    assert words in judged.findings[0].message


def test_probe_that_began_is_the_next_links() -> None:
    assert judge_runtime(seen(python=None, bound_libraries=(), ending=Ending(139, step="cuInit"))).verdict is None


@pytest.mark.parametrize(
    ("changes", "code", "verdict"),
    [
        ({}, "kfd-not-bound", GpuVerdict.NOT_VISIBLE),
        ({"device_files": ("/dev/kfd",), "writable": False}, "kfd-not-permitted", GpuVerdict.NOT_VISIBLE),
        ({"device_files": ("/dev/kfd", "/dev/dri/renderD128"), "writable": True}, "devices-bound", None),
    ],
)
def test_amd_devices(changes: dict[str, object], code: str, verdict: GpuVerdict | None) -> None:
    judged = judge_runtime(seen(AMD, **changes))
    assert (codes(judged), judged.verdict) == ([code], verdict)
