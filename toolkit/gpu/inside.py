"""Run one of ctk's Python texts in a container, apart from the user's environment, and take its answer."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.gpu.host import Vendor
from toolkit.gpu.payload import STEP
from toolkit.gpu.untrusted import parse_answer
from toolkit.inventory.formats.layers import layers_of
from toolkit.runtime.layer_check import checked, not_mounted
from toolkit.runtime.options import container_environment
from toolkit.support.errors import ProgramFailed
from toolkit.support.processes import contained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from toolkit.runtime.engine import Runtime
    from toolkit.support.errors import CtkError
    from toolkit.support.processes import Completed

# What a scheduler sets to give a job its GPUs; CUDA and HIP read it.
# Source: Slurm, Generic Resource (GRES) Scheduling; CUDA C++ Programming Guide, environment variables; ROCm, GPU
# isolation techniques.
PASSED = (
    *("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"),
    *("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
    *("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"),
)
# The variables for the container; and what has the runtime not evaluate them, which ctk's own are escaped for.
_NOT_KEPT = re.compile(r"(APPTAINER|SINGULARITY)(ENV_|_NO_EVAL$)")
_NO_PYTHON = 97  # any status that neither a shell (126, 127) nor Python (1, 2) uses by itself
_BEGUN, _LEFT = "ctk-inside", "ctk-left:"
# The shell outlives a Python that a signal ends, and names the processes that it leaves. It looks for these only where
# the container has its own process numbers, which the runtime's own first process shows. That process takes its name
# only after it has started the shell, which therefore reads the name late. The shell's standard input ends with ctk,
# even if ctk is killed: the shell then ends, and with it the container, or without such numbers the group.
_START = f"""echo {_BEGUN}
p=$2; [ -n "$p" ] || p=$(command -v python3 || command -v python) || exit {_NO_PYTHON}
own() {{ read -r n 2>/dev/null </proc/1/comm && case $n in appinit|sinit) ;; *) false; esac; }}
exec 3<&0 </dev/null
{{ read -r n <&3; g=0; if own; then g=$$; fi; kill -9 "$g"; }} & w=$!
"$p" -c "$1" 3<&-; s=$?
own && for d in /proc/[0-9]*; do
    case $d in /proc/1|/proc/$$|/proc/$w) continue; esac
    read -r n 2>/dev/null <"$d/comm" && echo "{_LEFT}$n"
done
exit $s"""
_MAX_LINES = 12
_SLOW = "This says nothing about the GPU. If the file system is slow, use a longer --timeout."
# How many times as long as a step the start of the container may take: a slow file system says nothing about the GPU.
START_FACTOR = 5.0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a Python text in the container ended.

    `status` is that of a shell (128 + N if signal N ended it), `step` the last step that was begun, `left` the names of
    processes that were left, `lines` the last lines of what it printed. `seconds` is the time limit where it was over.
    """

    status: int = 0
    seconds: float | None = None
    step: str | None = None
    left: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it."""
        try:
            return signal.Signals(self.status - 128).name if self.status > 128 else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a text answered, whether there was a Python, and how it ended.

    `facts` is None if it did not come to an answer, and text if the answer is no JSON object.
    """

    facts: dict[str, Any] | str | None
    python: bool
    ending: Ending


@contextlib.contextmanager
def asked(
    runtime: Runtime, image: Path, script: str, mark: str, *, vendor: Vendor, interpreter: str = ""
) -> Iterator[Callable[[float], Answer]]:
    """Start `script` in `image`; yields what waits for the answer, at most so many seconds for each of its steps.

    `interpreter` is the Python's path in the image; the first of PATH if empty. Nothing of it is left after the block.
    Raises ProgramFailed (`container-did-not-start`) if the container does not start, and MissingOnHost if it lacks a
    layer of the image.
    """
    nvidia = vendor is Vendor.NVIDIA
    started = ["/bin/sh", "-c", _START, "sh", script, interpreter]
    command = checked(started, str(image), layers_of(image).names)
    argv = runtime.exec(image, command, gpu=nvidia, rocm=not nvidia, isolated=True)
    environment = isolated_environment(os.environ)
    with contained(argv, env=environment, step=_last_step, start_factor=START_FACTOR) as wait:
        yield lambda timeout: _read(image, mark, wait(timeout), timeout)


def isolated_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The runtime's environment: of the user's variables only those that choose GPUs reach the container."""
    kept = {name: value for name, value in environ.items() if not _NOT_KEPT.match(name)}
    return {**kept, **container_environment(**{name: environ[name] for name in PASSED if name in environ})}


def _last_step(printed: str) -> str | None:
    """The last step that is in what was printed. Its first line is the shell's; the start of Python belongs to it."""
    found = printed.rfind(f"\n{STEP}")
    return None if found < 0 else printed[found + 1 :].partition("\n")[0]


def _read(image: Path, mark: str, done: Completed, timeout: float) -> Answer:
    lines = done.stdout.splitlines()
    if _BEGUN not in lines:  # its first line, which the capture keeps
        raise _not_started(image, done, timeout)
    facts = next((parse_answer(line[len(mark) :]) for line in reversed(lines) if line.startswith(mark)), None)
    printed = [line for line in lines if line != _BEGUN and not line.startswith((mark, STEP, _LEFT))]
    step = next((line[len(STEP) :] for line in reversed(lines) if line.startswith(STEP)), None)
    ending = Ending(
        status=done.returncode if done.returncode >= 0 else 128 - done.returncode,
        seconds=(timeout if step else timeout * START_FACTOR) if done.timed_out else None,
        step=step,
        left=tuple(line[len(_LEFT) :] for line in lines if line.startswith(_LEFT)),
        lines=tuple(line for line in [*printed, *done.stderr.splitlines()] if line.strip())[-_MAX_LINES:],
    )
    return Answer(facts, done.returncode != _NO_PYTHON, ending)


def _not_started(image: Path, done: Completed, timeout: float) -> CtkError:
    from toolkit.runtime.known_errors import explain

    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    if (unmounted := not_mounted(lines)) is not None:
        return unmounted
    known = explain(lines)
    how = f"within {timeout * START_FACTOR:g} s" if done.timed_out else f"(status {done.returncode})"
    return ProgramFailed(
        f"{image} could not be started {how}" + (f": {known.meaning}" if known else ""),
        fix=known.fix if known else _SLOW if done.timed_out else None,
        code="container-did-not-start",
        last_lines=tuple(lines[-_MAX_LINES:]),
    )
