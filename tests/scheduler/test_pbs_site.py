"""What PBS says of its queues and vnodes, as a user sees it; the texts are those of OpenPBS 23.06 (2026-11-24)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.scheduler.pbs_site import (
    Site,
    Vnode,
    hosts_of,
    notes_of,
    parse_attributes,
    parse_vnodes,
    partitions_of,
    type_request,
    vnodes_of,
)
from toolkit.scheduler.profile_file import load_profile
from toolkit.scheduler.profile_text import profile_text
from toolkit.scheduler.profiles import GpuType, JobLimits, Partition, Profile
from toolkit.scheduler.programs import Scheduler
from toolkit.scheduler.states import HostFacts

if TYPE_CHECKING:
    from pathlib import Path

QSTAT = """\
Queue: workq
    queue_type = Execution
    state_count = Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun
\t:0\x20
    resources_max.walltime = 24:00:00
    enabled = False
    started = True

Queue: small
    queue_type = Execution
    from_route_only = True
    resources_max.ngpus = 1
    resources_max.walltime = 01:00:00
    resources_default.walltime = 00:30:00
    enabled = True
    started = True

Queue: big
    queue_type = Execution
    from_route_only = True
    resources_min.ngpus = 2
    default_chunk.mem = 2gb
    enabled = True
    started = True

Queue: route
    queue_type = Route
    route_destinations = small,big,route,other@elsewhere
    enabled = True
    started = True

Queue: vip
    queue_type = Execution
    acl_user_enable = True
    acl_users = ann@*,-bob@*
    enabled = True
    started = True

Queue: grp
    queue_type = Execution
    acl_group_enable = True
    acl_groups = lab
    enabled = True
    started = True

Queue: stopped
    queue_type = Execution
    enabled = True
    started = False

Queue: qq
    queue_type = Execution
    default_chunk.Qlist = qq
    max_run_res.ngpus = [u:PBS_GENERIC=1]
    resources_max.nodect = 5
    enabled = True
    started = True
"""
NODE = {"ncpus": "8", "ngpus": "2", "mem": "16gb", "gpu_type": "a100"}
N1 = Vnode("n1", "n1", {**NODE, "Qlist": "pp,qq"})
N2 = (
    Vnode("n2", "n2", {"ncpus": "0", "ngpus": "0", "mem": "0"}),
    *(Vnode(f"n2[{part}]", "n2", {"ncpus": "4", "ngpus": "1", "mem": "8gb", "gpu_type": "a100"}) for part in (0, 1)),
)
SITE = Site(parse_attributes(QSTAT, "Queue"), {"default_queue": "route"}, (N1, *N2), "bob", ("lab",))
HOURS = 3600
COMMON: dict[str, Any] = {"cores": 8, "memory": 16 * 1024**3, "gpus": 2, "gpu_types": ("a100",)}


def test_user_sees_the_queues_that_take_jobs_with_the_limits_behind_routes() -> None:
    small = Partition("small", False, "", HOURS, 1800, None, 2, job=JobLimits(max_gpus=1), **COMMON)
    big = Partition("big", max_nodes=2, job=JobLimits(min_gpus=2), **COMMON)
    assert partitions_of(SITE) == (
        Partition("route", True, "passes jobs on to small, big", destinations=(small, big)),
        Partition("grp", max_nodes=2, **COMMON),
        Partition("qq", max_nodes=1, job=JobLimits(max_nodes=5), **COMMON),
    )


def test_profile_of_the_queues_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    found = partitions_of(SITE)
    gpu = (GpuType("a100"),)
    path.write_text(profile_text(Profile("mine", path, Scheduler.OPENPBS, partitions=found, gpu_types=gpu)))
    assert load_profile(path).partitions == found


@pytest.mark.parametrize(
    ("acl", "allowed"),
    [
        ("bob", True), ("bob@*", True), ("+bob@login1", True), ("-bob", False), ("-bob,bob", False), ("ann", False),
        ("+", True), ("-,bob", True), ("+,-bob@*", False), ("", False), ("bobby", False),
    ],
)  # fmt: skip
def test_first_entry_of_an_access_list_that_names_the_user_decides(acl: str, allowed: bool) -> None:
    site = replace(SITE, queues={"vip": {**SITE.queues["vip"], "acl_users": acl}})
    assert [partition.name for partition in partitions_of(site)] == ["vip"] * allowed


def test_limits_of_the_server_are_for_queues_without_their_own() -> None:
    site = replace(SITE, server={"resources_max.walltime": "2:00:00", "resources_max.ngpus": "3"})
    route, grp, _ = partitions_of(site)
    assert (grp.max_time, grp.job.max_gpus, grp.is_default) == (2 * HOURS, 3, False)
    assert [(queue.max_time, queue.job.max_gpus) for queue in route.destinations] == [(HOURS, 1), (2 * HOURS, 3)]


def test_nodes_of_a_queue_serve_no_other_one() -> None:
    site = replace(SITE, vnodes=(replace(N1, queue="grp"), *N2))
    assert {partition.name: partition.max_nodes for partition in partitions_of(site)} == {
        "route": None, "grp": 1, "qq": None,
    }  # fmt: skip


def test_what_a_profile_cannot_say_is_a_note() -> None:
    notes = list(
        notes_of(replace(SITE, server={"default_queue": "workq", "max_queued_res.ngpus": "[u:PBS_GENERIC=8]"}))
    )
    for words in (
        "The default queue is workq, which does not take your jobs",
        "(disabled, stopped, lists, routes): workq, small, big, vip, stopped.",
        "route also passes jobs on to queues of other servers",
        "qq has limits that are not in this profile: max_run_res.ngpus",
        "The server has limits that are not in this profile: max_queued_res.ngpus",
    ):
        assert any(words in note for note in notes), (words, notes)
    assert not [note for note in notes if "differ" in note]
    small = replace(N1, resources={**NODE, "ncpus": "4"})
    assert any("The nodes of grp differ" in note for note in notes_of(replace(SITE, vnodes=(small, *N2))))


def test_vnodes_of_openpbs() -> None:
    available = {"host": "n1", "vnode": "n1[0]", "ncpus": 8, "mem": "16384000kb", "ngpus": 4, "gpu_type": "h200"}
    nodes = {
        "n1[0]": {"state": "free", "resources_available": available},
        "n2": {"state": "down,offline", "resources_available": {}, "pcpus": 2, "queue": "q"},
    }
    n1, n2 = parse_vnodes(json.dumps({"nodes": nodes}))
    assert hosts_of([n1]) == (HostFacts("n1", 8, 16000, 4, "h200"),)
    assert (n2.host, n2.queue, n2.usable, n2.resources["ncpus"]) == ("n2", "q", False, "2")
    request = type_request([n2, n1])
    assert request is not None
    assert request.text == "-l gpu_type={type}"
    assert type_request([n2]) is None


def test_nodes_of_torque_are_vnodes_of_their_own() -> None:
    host = HostFacts("n1", 8, 16000, 2)
    assert hosts_of(vnodes_of([host])) == (host,)


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    site = replace(SITE, queues=parse_attributes(f"Queue: {text}", "Queue"))
    assert isinstance(partitions_of(site), tuple)
    assert all(isinstance(note, str) for note in notes_of(site))
