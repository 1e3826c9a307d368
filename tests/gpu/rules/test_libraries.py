"""The CUDA libraries of a build: absent, hidden, too old."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpu.judged import GPU, SITE, audit, codes, dist, framework
from toolkit.gpu.facts import GpuLibrary, Loaded
from toolkit.inventory.knowledge.builds import Want
from toolkit.support.findings import Verdict


def test_a_wrong_library_is_told_from_an_absent_and_a_hidden_one() -> None:
    lacking = (
        Loaded(Want("libcudart.so.11.0", "x"), None, others=("/usr/local/cuda/lib64/libcudart.so.10.1",)),
        Loaded(Want("libcublas.so.11", "x"), None),
        Loaded(Want("libcufft.so.10", "x"), None, unreachable=("/usr/local/cuda/lib64/libcufft.so.10",)),
        Loaded(Want("libnccl.so.2", "x", required=False), None),
        Loaded(Want("libcurand.so.10", "x"), "/usr/lib/libcurand.so.10"),
    )
    found = audit(framework("tensorflow", "2.4.1", replace(GPU, cuda="11.0"), lacking=lacking))
    by_code = {one.code: one.message for one in found.findings}
    assert "libcudart.so.11.0, but the image holds libcudart.so.10.1" in by_code["wrong-cuda-library"]
    assert by_code["missing-cuda-library"].endswith(": libcublas.so.11.")
    assert "/usr/local/cuda/lib64, which the loader does not search" in by_code["cuda-library-off-path"]
    assert "libnccl" not in "".join(by_code.values())
    assert "libcurand" not in "".join(by_code.values())


@pytest.mark.parametrize(
    ("there", "requires", "old"),
    [
        ("9.1.0.70", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', True),
        ("9.3.0.75", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', False),
        ("9.10.2", 'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"', False),
        ("9.2", 'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"', True),
        ("8.9.7", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', False),  # `wrong-cuda-library` says that
        ("9", 'nvidia-cudnn-cu12==9.3.0.75; extra == "and-cuda"', False),
        ("9.1.0.70", "numpy<2.1", False),
    ],
)
def test_tensorflow_and_torch_refuse_a_cudnn_older_than_their_own(there: str, requires: str, old: bool) -> None:
    path = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
    loaded = (Loaded(Want("libcudnn.so.9", "x"), path),)
    own = replace(dist("tensorflow", "2.18.1"), requires=("numpy", requires))
    library = GpuLibrary("cudnn", there, path, True)
    found = audit(framework("tensorflow", "2.18.1", GPU, lacking=loaded, distribution=own), libraries=(library,))
    assert codes(found, "error") == ({"cudnn-too-old"} if old else set())
    torch = framework("torch", "2.6.0", GPU, lacking=loaded, distribution=own)
    assert codes(audit(torch, libraries=(library,)), "error") == ({"cudnn-too-old"} if old else set())


def test_onnxruntime_can_be_told_where_its_libraries_are() -> None:
    hidden = Loaded(Want("libcudnn.so.9", "x"), None, unreachable=(f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",))
    found = audit(framework("onnxruntime-gpu", "1.22.0", GPU, lacking=(hidden,)))
    assert found.verdict is Verdict.GPU_READY
    assert "preload_dlls" in str(found.findings[0].fix)
    before = audit(framework("onnxruntime-gpu", "1.20.2", GPU, lacking=(hidden,)))
    assert before.verdict is Verdict.GPU_BROKEN
    assert "LD_LIBRARY_PATH" in str(before.findings[0].fix)
