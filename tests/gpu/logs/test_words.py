"""What single messages say of the device."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gpu.logs.corpus import judged
from toolkit.gpu.logs import words
from toolkit.gpu.logs.patterns import patterns
from toolkit.gpu.logs.words import Said, device_said, is_setting

GPU = """\
Model ready on cuda
ResNet50 loaded on cuda:1
Device selected for training: cuda
Moving model to cuda
Distributed strategy: 4 GPUs
XLA backend: gpu
Provider: CUDAExecutionProvider
Training on GPU: True
GPU acceleration enabled (CuPy backend)
模型加载完成，使用设备: cuda:0
使用デバイス： cuda:0
显卡可用，使用显卡进行训练
PipeMaster:: device: cuda
using CUDA device 0
Usando dispositivo: cuda
Training auf GPU
Auto-selected device: cuda:2 | total=40.0GB used=1.2GB
*GPUs FOUND, training on /GPU:0
Solver mode: GPU
Encoding on cuda
Device ........................ cuda
Torch is using: cuda
Model on GPU: True
GPU is being used for training
Pipeline loaded on cuda:0 in 8.1s
Running simulation on the CUDA platform
XGBoost is using GPU (gpu_hist)
Loading kNN-VC (device=cuda)...
Loaded model on cuda with 812 classes.
"""
CPU = """\
Training on GPU: False
GPU Available: False
CUDA not available - using CPU mode (slower)
DEFAULTING TO CPU DEVICE `lightning.qubit`
Using CPU for inference (graph has 8,123,991 edges)...
Providers: ['CPUExecutionProvider']
UserWarning: gpu is not available
GPU acceleration disabled in config
CuPy not found — SDE falling back to NumPy (CPU)
model.cuda() failed, stay on CPU: CUDA error
GPU利用不可、CPUで実行します
未检测到显卡，使用CPU进行训练
CUDA crash detectado, cambiando a CPU
Périphérique : cpu
GPU nicht verfügbar
No NVIDIA GPU detected — routing to CPU path.
UserWarning: No GPU found. Please use a GPU to train your neural network.
There is no GPU on this node: CPU will be used
CUDA error: out of memory. Retrying on CPU ...
GPU disabled by user
TensorFlow is using the CPU
未使用GPU
GPUを使用しません
Entrenando sin GPU
"""
NO_GPU = """\
RuntimeError: CUDA is required for this script.
[FATAL] CUDA not available. This script requires a GPU.
ERROR: GPU is not available, exiting
RuntimeError: The requested CUDA device could not be loaded
Exception: GPUが利用できません。
No GPU detected, exiting.
This code requires a GPU. Aborting.
Cannot find a GPU, abort
"""
NOTHING = """\
use_cuda: true
device: "cuda:0"
{"device": "cuda:0", "epochs": 3}
rl_device: cuda:0
  device: cuda
--gpu GPU  use GPU 0; if not available, using CPU
Skipping dense reconstruction because CUDA is not available.
Using 8 CPU threads
Using 2 CPUs
GPU memory: 10 GiB
Loading data on CPU
Compiled with CUDA: True
Torch backend: nVidia CUDA 11.8 cuDNN 8907
running on: gpu07
offloaded 0/33 layers to GPU
Available devices: cuda:0, cpu
GPUs available: [PhysicalDevice(name='/physical_device:GPU:0', device_type='GPU')]
Device requested: cuda
kernel:0, (2048, 4096), /device:GPU:0
If no GPU is available the CPU will be used
Tip: train on GPU for best performance
To use GPU, set device=cuda
CUDA_VISIBLE_DEVICES: 0
The job needs no GPU
failed to import cython module: falling back to numpy
use_gpu = False
use_gpu=False
Namespace(device='cpu', epochs=3, use_gpu=False)
tests/test_net.py::test_forward[cuda] SKIPPED (needs a GPU)
doc 3: "I am using GPU 0 and my training runs on cuda:0"
doc 4: "device = cuda:0"
    print("The model is running on the GPU")
job 4413: training on cuda:1, 81% GPU utilization
params: device: cuda
exporting model for device: cuda
Last run used device: cuda (2026-01-02)
Falling back to CPU for op aten::foo
See the page of PyTorch for using CUDA
NVENC encoder on GPU 0
    return Proposal(base.name, uses_gpu=base.framework is not None)
    job.run_on_gpu(batch)
    log.write_text("using device: cuda")
Another process uses the GPU
An image that is built, or building an image with a GPU
GPU で実行するまでの手順を説明します
Running on gpu-node-3
MPI: using CUDA-aware transport
[config] device: cuda
Command: python x.py device=cuda
Model will be moved to cuda later
will run on GPU once the queue is free
Training on GPU takes 3 minutes, on CPU 3 hours
dataset moved to gpu-cluster:/data
Loading checkpoint saved on cuda:0
mock device: cuda
plan: run on GPU 0
PID 4411 is using GPU 0
The GPU is used by 3 users
Loaded model onto execution device: model_bytes_loaded=12.1MB
"""


@pytest.mark.parametrize(
    ("lines", "said"),
    [(GPU, Said.GPU), (CPU, Said.CPU), (NO_GPU, Said.NO_GPU), (NOTHING, None)],
    ids=["gpu", "cpu", "no-gpu", "nothing"],
)
def test_words_of_a_message(lines: str, said: Said | None) -> None:
    assert {line: device_said(line, line.strip()) for line in lines.splitlines()} == dict.fromkeys(
        lines.splitlines(), said
    )


def test_a_message_of_which_the_words_say_something_has_a_core() -> None:
    cores = {pattern.says: pattern.cores for pattern in patterns() if pattern.says}
    for lines, said in ((GPU, Said.GPU), (CPU, Said.CPU), (NO_GPU, Said.NO_GPU)):
        for line in lines.splitlines():
            assert any(core in line.lower() for core in cores[said]), line


ANY = sorted({*words._ALL_WORDS, *words._PERHAPS, *words._LABELS, *words._USING, *words._SKIPPED, *words._PREPOSITIONS})
ANY += [*words._NO, *words._ENDS, "job", "please", "build", "running", "falling", "model", "cuda:0", "3", "uses_gpu"]
ANY += [*":=.,;!?()[]{}/\"'", "->", "_", "no gpu", "is", '("', "x_y=", "'cpu'", "デバイス", "使用", "ü", "\x00"]


@given(st.lists(st.sampled_from(ANY), max_size=14), st.sampled_from(["", " "]))
def test_any_words_are_read(parts: list[str], between: str) -> None:
    message = between.join(parts)
    assert device_said(message, message) in (*Said, None)


def test_a_line_within_a_configuration_is_a_setting() -> None:
    assert is_setting("device: cuda", "device: cuda", near=["seed: 1"])
    assert not is_setting("device: cuda", "device: cuda", near=["Loading the data"])
    assert not is_setting("Device: cuda", "Device: cuda", near=["seed: 1"])


@pytest.mark.parametrize("line", NOTHING.splitlines())
def test_a_line_that_says_nothing_of_use_is_never_called_used(line: str) -> None:
    assert judged(f"{line}\n").verdict.value != "gpu-used"


def test_a_dumped_configuration_is_not_use() -> None:
    log = "seed: 1\ndevice: cuda\nepochs: 40\nmodel:\n  name: unet\n"
    assert judged(log).verdict.value == "not-known"
    assert judged("device: cuda\nseed: 1\n").verdict.value == "not-known"
    assert judged(log.replace("cuda", "cpu")).verdict.value == "not-known"
    assert judged(log.replace(":", "\x1b[36m:\x1b[0m")).verdict.value == "not-known"
    assert judged("2026-01-01 10:00:00 INFO use_gpu=False\n").verdict.value == "not-known"
    assert judged(log.replace("device", " 33%|#3 | 1/3 [00:00<00:01]\rdevice")).verdict.value == "not-known"


@pytest.mark.parametrize("line", ["Is the model on cuda?", "Are you using the GPU?", "Training on GPU?"])
def test_a_question_says_nothing(line: str) -> None:
    assert judged(f"{line}\n").verdict.value == "not-known"
    assert judged("Using GPU? yes\n").verdict.value == "gpu-used"
    assert judged("Using GPU? no\n").verdict.value == "cpu-fallback"


def test_the_message_of_a_json_logger_counts() -> None:
    assert judged('{"level": "info", "message": "Using device: cuda:0"}\n').verdict.value == "gpu-used"
    assert judged('{"level": "info", "device": "cuda:0"}\n').verdict.value == "not-known"
