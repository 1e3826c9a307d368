"""What one line says: the words of programs about their device, in many forms. The token is tested in test_judge.py."""

from __future__ import annotations

from tests.gpu.logs.corpus import judged

GPU = """\
Using device: cuda
Using device: cuda:0 (NVIDIA A100-SXM4-80GB)
Using cuda
Using cuda device
Using CUDA
device: cuda
device = cuda
Device used: cuda
Device in use: cuda:0
Running on device: cuda
Running on cuda
Running on GPU
Running on the GPU
Training on cuda
Training on GPU
Starting training on cuda...
Starting training on GPU: [0]
Training on cuda for 10 epochs
Training on device: cuda:0
Training on cuda:0 | 50 epochs | LR: 0.001
training on gpu(0)
training on [gpu(0)]
training on [device(type='cuda', index=0)]
Training device: cuda
Using torch device cuda:0
Using GPU
Using GPU.
Using GPU!
Using GPU: NVIDIA A100
Using GPU 0: Tesla V100-SXM2-16GB
Using GPU device: Tesla V100
Using GPU device 0
Using 4 GPUs
Using 4 GPU(s)
Let's use 4 GPUs!
We will use the GPU: Tesla K80
CUDA is available! Training on GPU ...
CUDA is available!  Training on GPU ...
Use GPU: 0 for training
Use GPU: cuda:0
Model moved to cuda
Model loaded on cuda:0
Loaded model on cuda
Moving model to cuda
Model is on cuda:0
Model on device: cuda:0
Model device: cuda:0
[INFO] Starting training on cuda
[INFO] using device cuda
Torch device: cuda
PyTorch device: cuda
Use pytorch device: cuda
Use pytorch device_name: cuda:0
INFO:sentence_transformers.SentenceTransformer:Use pytorch device: cuda
Selected device: cuda
Compute device: cuda
Accelerator: cuda
ℹ Using GPU: 0
=> using GPU 0
Training the model on GPU
Training ResNet50 on cuda:0
Training on 8 GPUs
JAX backend: gpu
Using NVIDIA A100-SXM4-40GB
Running on NVIDIA GeForce RTX 3090
device: cuda, n_gpu: 1
🚀 Using device: cuda
✅ Using device: cuda
>>> Device: cuda
Using device cuda:0 with mixed precision
Using device: cuda | dtype: bfloat16
Device:        cuda
[Device] cuda
Device set to: cuda
Setting device to cuda
GPU mode
Using GPU: True
Using CUDA: True
The model is running on cuda:0
Inference device: cuda
Training will run on GPU
Using gpu 0
using gpu:0
Executing on GPU
Computing on cuda
Trainer running on cuda
cuda:0
2024-05-22 10:11:12,123 - INFO - train.main - Training on cuda:0
Device : cuda
device='cuda'
Using device: "cuda"
Using device: torch.device('cuda')
Using device: device(type='cuda', index=0)
Device type: cuda
Processing on GPU
[Info] Device: cuda
Using NVIDIA GPU
Using DEVICE: cuda
Train on cuda
Current device: cuda:0
default device: cuda:0
Using GPU for training
Using GPU acceleration
Training with GPU
Pretraining on cuda
GPU available, training on cuda
GPU is available. Using GPU.
Model running on GPU
Epoch 1: gpu_mem 10.2G
"""
CPU = """\
Using device: cpu
Using cpu device
device: cpu
Running on CPU
Running on the CPU
Training on cpu
Training on CPU ...
CUDA is not available.  Training on CPU ...
CUDA is not available. Training on CPU ...
CUDA not available, using CPU
CUDA not available - using CPU
No GPU available, using the CPU instead.
No GPU found, using CPU
No CUDA device found, using CPU.
WARNING: No GPU, using CPU
GPU not available, using CPU
GPU not available. Training on CPU.
GPU not found, running on CPU
No GPU detected. Using CPU.
using CPU, this will be slow
Starting training on CPU, could be very slow
ℹ Using CPU
Use CPU
Using CPU
Use pytorch device: cpu
Using GPU: False
CUDA available: False
GPU available: False
Number of GPUs: 0
Num GPUs Available: 0
Num GPUs Available:  0
GPUs: []
Available GPUs: []
0 GPUs available
Found 0 GPUs
torch.cuda.device_count(): 0
device_count: 0
Training the model on CPU
No GPU
No GPU available
No GPU available.
CUDA is not available
cuda not available
GPU is not available
Not using GPU
Not using CUDA
JAX backend: cpu
Device: TFRT_CPU_0
Model device: cpu
training on cpu(0)
Using device: cpu (CUDA not available)
CUDA unavailable, falling back to CPU
Warning: CUDA not available, falling back to CPU
⚠️ CUDA not available, using CPU (this will be slow)
CPU mode
Device used: cpu
Selected device: cpu
Running on device: cpu
No GPU available, using CPU.
There are 0 GPU(s) available.
Device type: cpu
"""
NOT = """\
Not using device: cuda, because unavailable
Error: cannot use device: cuda
ERROR: flash-attn: Using device: cuda is required
Using device: cuda if available else cpu
Cannot use GPU
Warning: not falling back to CPU
It will fall back to CPU if no GPU is there
Using device: cpu for evaluation
Using device: cpu for export
Loading on cpu
Loading checkpoint on cpu
GPU is available
CUDA is available
There are 2 GPU(s) available.
Number of GPUs: 2
Device name: Tesla V100
Memory of cuda:1
Please use a GPU
To use GPU, set device=cuda
--device cuda
Use --device cuda to train on GPU
training on 1 devices (GPUs/TPUs)
max tokens per device (GPU/TPU) = 4096 and max sentences per device = None
CUDA version: 11.8
GPU memory: 10.2G
If you want to use GPU, install cuda
device: cuda or cpu
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!
Using CPU for data loading
data device: cpu
CUDA extension compiled
Installing GPU support
Preprocessing on CPU
Tokenizing on CPU
Using 16 CPUs
Would use GPU
Trying to use GPU
Using 8 CPU cores
Training on CPU is not recommended, using GPU
Training on GPU is faster than on CPU
GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-xxx)
The GPU will be used if available
gpu: 0
This program requires a CUDA GPU
Move model to GPU with .cuda()
Using CPU offload
Using device: None
NVIDIA GPU driver 535
"""


def verdicts(lines: str) -> dict[str, str]:
    return {line: judged(f"{line}\n").verdict.value for line in lines.splitlines()}


def test_words_of_a_program_on_the_gpu() -> None:
    assert verdicts(GPU) == dict.fromkeys(GPU.splitlines(), "gpu-used")
    assert all(judged(f"{line}\n").only_said for line in GPU.splitlines())


def test_words_of_a_program_on_the_cpu() -> None:
    assert verdicts(CPU) == dict.fromkeys(CPU.splitlines(), "cpu-fallback")
    for line in CPU.splitlines():
        assert "log-gpu-used" not in {found.code for found in judged(f"{line}\n").findings}


def test_words_of_a_program_that_do_not_say_where_it_computes() -> None:
    assert verdicts(NOT) == dict.fromkeys(NOT.splitlines(), "not-known")
