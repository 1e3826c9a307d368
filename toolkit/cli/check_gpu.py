"""`ctk check-gpu`: report whether the frameworks of an image compute on the GPU, on this host or in a job's log."""

from __future__ import annotations

import os
from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.next_step import next_job
from toolkit.cli.output import live_steps, print_findings, print_json, print_text, suggest
from toolkit.gpu.check import AUTO, NONE, TIMEOUT, check_name
from toolkit.gpu.nodes import is_on_several_nodes
from toolkit.gpu.verdicts import GpuVerdict
from toolkit.support.errors import WrongInput


def check_gpu(
    context: typer.Context,
    image: Annotated[Path | None, typer.Argument(metavar="IMAGE", help="A SIF or a sandbox directory.")] = None,
    framework: Annotated[
        str, typer.Option(metavar="NAME", help="Framework to check; auto: those of the image; none: the driver only.")
    ] = AUTO,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Time limit of each step in the container; 5 times as long for its start.",
        ),
    ] = TIMEOUT,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Read the log of a job instead (-: standard input).")
    ] = None,
    print_gate: Annotated[
        bool, typer.Option("--print-gate", help="Print this check as lines for a job script of bash.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check whether an image's frameworks compute on the GPU.

    Starts the image with --nv (--rocm on a host with AMD GPUs) and follows the chain from the host to the framework:
    the host's driver, what the runtime binds, the driver's answers inside the container, the framework, and its
    arithmetic. The chain ends at the link that breaks, with the cause and what to do.

        ctk check-gpu trial.sif
        ctk check-gpu trial.sif --framework none    the driver only, in less than a second
        srun ctk check-gpu trial.sif                in a job on several nodes: one line a node
        ctk check-gpu trial.sif --print-gate        the driver's check as lines for your own job script

    Each framework multiplies two small matrices on every GPU; the result is compared with the CPU's, and the driver,
    not the framework, says where it is. The checks run without the user's variables and ~/.local; what of these would
    change the result in a job is a warning.

    With --log, says from the log of a job whether its program used the GPU, and shows the lines that prove it.

        ctk check-gpu --log logs/train-42.log

    Exit status 0: gpu-used, or gpu-visible if no framework was checked. 1: cpu-fallback, gpu-not-visible, broken or
    not-known; the reason is printed. 3: this host has no GPU.
    """
    if log is not None:
        _refuse_unused(context, "--log", "framework", "timeout", "print_gate")
        from toolkit.cli.check_gpu_log import check_log

        check_log(log, image, json=json)
    if image is None:
        raise WrongInput("name an image, or a log with --log", fix="ctk check-gpu IMAGE, or ctk check-gpu --log FILE")
    from toolkit.cli.used_image import used_image

    print_findings(used_image(image, "the check"), stderr=True)
    if print_gate:
        from toolkit.gpu.framework_check import gate_script
        from toolkit.inventory.formats.layers import layers_of
        from toolkit.jobs.gate import gate_lines
        from toolkit.jobs.model import GateCheck
        from toolkit.support.namespace import root_needs_userns

        path = str(image.absolute())  # the job may start in another directory
        _refuse_unused(context, "--print-gate", "json", "timeout")
        check_name(framework)
        asked = framework not in (AUTO, NONE)
        check = GateCheck(framework, gate_script(framework, framework), "python3") if asked else None
        print_text(gate_lines(path, userns=root_needs_userns(), check=check, layers=layers_of(image)))
        return
    from toolkit.gpu.check import check_gpu
    from toolkit.runtime.engine import find_runtime
    from toolkit.support.site import load_site

    check_name(framework)
    if not isfinite(timeout):
        raise WrongInput("--timeout takes a number of seconds")
    with live_steps(f"Checking the GPU inside {image}") as on_step:
        runtime = find_runtime(load_site())
        found = check_gpu(
            runtime, image, framework=framework, timeout=timeout, on_step=on_step, meanwhile=lambda: _judge(image)
        )
    if json:
        from toolkit.cli.documents import check_gpu as documents

        print_json("ctk.check-gpu/1", documents.checked(image, found), found.findings)
    elif is_on_several_nodes(os.environ):
        from toolkit.cli.chain_view import show_row

        show_row(found)
    else:
        from toolkit.cli.chain_view import show_checked

        show_checked(image, found)
        if found.chain.verdict in (GpuVerdict.USED, GpuVerdict.VISIBLE, GpuVerdict.NO_GPU):
            suggest(next_job(image))
    raise typer.Exit(found.chain.verdict.exit_status)


def _refuse_unused(context: typer.Context, beside: str, *names: str) -> None:
    """Raise WrongInput if one of these options was given, which `beside` makes useless."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            option = f"--{name.replace('_', '-')}"
            raise WrongInput(f"{option} has no effect with {beside}", fix=f"Omit {option}.")


def _judge(image: Path) -> None:
    """Raise WrongInput if the image is for another architecture."""
    from toolkit.pins.bases.local import require_runnable

    require_runnable(image)
