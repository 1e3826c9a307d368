"""`ctk check-gpu`: start an image with --nv and report whether the GPU is visible from inside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.documents import images as documents
from toolkit.cli.next_step import next_job
from toolkit.cli.output import live_steps, print_findings, print_json, print_text, say, suggest
from toolkit.gpu.diagnosis import diagnose
from toolkit.gpu.verdicts import GpuVerdict

_ANSWERS = {
    GpuVerdict.VISIBLE: ("The GPU is visible from inside {image}.", "bold green"),
    GpuVerdict.NOT_VISIBLE: ("The GPU is not visible from inside {image}.", "bold red"),
    GpuVerdict.NOT_KNOWN: ("Cannot determine whether the GPU is visible from inside {image}.", "bold yellow"),
    GpuVerdict.NO_GPU: ("This host has no GPU; {image} could not be checked.", "bold yellow"),
}


def check_gpu(
    image: Annotated[Path, typer.Argument(metavar="IMAGE", help="A SIF or a sandbox directory.")],
    print_gate: Annotated[
        bool, typer.Option("--print-gate", help="Print this check as lines for a job script of bash.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check whether the GPU is visible in an image, or why not.

    Starts the image with --nv and asks the CUDA driver, from inside the container, for its version and the GPUs that it
    sees. No framework is needed.

        ctk check-gpu trial.sif
        ctk check-gpu trial.sif --print-gate    the check in front of the program, for your own job script

    Exit status 0: the GPU is visible. 1: it is not visible, or this cannot be determined; the reason is printed. 3:
    this host has no GPU.
    """
    if print_gate:
        from toolkit.jobs.gate import gate_lines
        from toolkit.runtime.engine import root_needs_userns
        from toolkit.runtime.options import image_argument

        print_text(gate_lines(image_argument(image), userns=root_needs_userns()))
        return
    from toolkit.gpu.host import host_gpu
    from toolkit.gpu.probe import probe
    from toolkit.inventory.formats.kinds import existing_image
    from toolkit.runtime.engine import find_runtime
    from toolkit.support.site import load_site

    existing_image(image)
    with live_steps(f"Querying the driver from inside {image}"):
        host = host_gpu()
        seen = probe(find_runtime(load_site()), image)
    result = diagnose(host, seen)
    words, style = _ANSWERS[result.verdict]
    if json:
        print_json("ctk.probe/1", documents.probe(image, result.verdict, host, seen), result.findings)
    else:
        print_findings(result.findings)
        say(words.format(image=image), style=style)
        suggest(next_job(image))
    raise typer.Exit(result.verdict.exit_status)
