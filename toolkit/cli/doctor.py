"""`ctk doctor`: this host's prerequisites, or one registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from toolkit.cli.output import live_steps, print_findings, print_json, say, suggest
from toolkit.support.errors import WrongInput
from toolkit.support.findings import Severity


def doctor(
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a redacted report for a support ticket.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not contact a package index or registry.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing FILE.")] = False,
    registry: Annotated[
        str | None,
        typer.Option("--registry", metavar="HOST", help="Check only this registry and your login at it."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Check this host's prerequisites.

    Checks the runtime, how images can be built and mounted, the work area and its free space, scheduler, GPU, package
    index, registries and their certificates, and the site's settings (/etc/ctk/site.toml, or the file named by
    CTK_SITE).

    The checks are real: ctk writes to the disks, builds and runs a small image, and sends one request to each server.
    All of it is removed afterwards.

        ctk doctor --report ticket.txt

    --registry tells whether one registry answers, by which certificate authorities, which file has a login for it, and
    whether the login is accepted. The password is not shown.

        ctk doctor --registry nvcr.io

    Exit status 3: images cannot be built or run here. With --registry, exit status 1: it cannot be used.
    """
    if registry is not None:
        if offline or report is not None:
            raise WrongInput(f"--registry does not go together with {'--offline' if offline else '--report'}")
        _check_registry(registry, json=json)
    from toolkit.doctor.facts import gather_host_facts
    from toolkit.doctor.report import report as report_text
    from toolkit.doctor.rules import build_mode, judge_host
    from toolkit.support.files import refuse_link, write_atomically
    from toolkit.support.site import load_site

    if report is not None:
        refuse_link(report)
    if report is not None and report.exists() and not force:
        raise WrongInput(f"{report} exists", fix="Choose another name, or use --force.")
    with live_steps("Checking this host") as on_step:
        facts = gather_host_facts(load_site(), offline=offline, on_step=on_step)
    findings = judge_host(facts)
    if report is not None:
        write_atomically(report, report_text(facts, findings))
    if json:
        print_json("ctk.doctor/1", {"build_mode": build_mode(facts)}, findings)
    else:
        print_findings(findings)
        if facts.site.help is not None:
            say(f"Help: {facts.site.help.value}")
        if report is not None:
            say(f"Written: {report}. Read it once before you send it.")
        suggest("ctk list")
    raise typer.Exit(3 if any(finding.severity is Severity.ERROR for finding in findings) else 0)


def _check_registry(text: str, *, json: bool) -> NoReturn:
    from toolkit.doctor.registry import ask_registry, judge_registry, parse_registry

    host, repository = parse_registry(text)
    with live_steps(f"Asking {host}"):
        facts = ask_registry(host, repository)
    findings = list(judge_registry(facts))
    if json:
        document = {"host": host, "status": facts.status, "login": facts.login, "accepted": facts.accepted}
        print_json("ctk.doctor-registry/1", document, findings)
    else:
        print_findings(findings)
    raise typer.Exit(1 if any(finding.severity is Severity.ERROR for finding in findings) else 0)
