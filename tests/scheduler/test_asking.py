"""The programs of each scheduler, replaced by ones that print what the real ones do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scheduler.test_detection import QCONF, QHOST, QSTAT, SCONTROL
from toolkit.scheduler.asking import detect
from toolkit.scheduler.detection import comments, profile_from, profile_name
from toolkit.scheduler.profile_text import profile_text
from toolkit.scheduler.programs import Scheduler
from toolkit.support.errors import MissingOnHost, ProgramFailed

NODES = '{"nodes": {"n1": {"state": "free", "resources_available": {"ncpus": 8, "mem": "16777216kb", "ngpus": 2}}}}'
XML = "<Data><Node><name>n1</name><state>free</state><np>8</np><gpus>1</gpus></Node></Data>"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH that has only what the test puts there."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    for name in ("SLURM_CONF", "SGE_ROOT"):
        monkeypatch.delenv(name, raising=False)
    return directory


def program(directory: Path, name: str, answers: dict[str, str]) -> None:
    """A program that prints an answer by its arguments, and exits with 1 for any others."""
    text = '#!/bin/sh\ncase "$*" in'
    for number, (words, answer) in enumerate(answers.items()):
        file = directory.parent / f"{name}-{number}"
        file.write_text(answer.rstrip("\n") + "\n")
        text += f"\n  '{words}') while IFS= read -r line; do printf '%s\\n' \"$line\"; done < {file}; exit 0 ;;"
    path = directory / name
    path.write_text(f"{text}\nesac\nexit 1\n")
    path.chmod(0o755)


def test_slurm_with_and_without_accounts(programs: Path) -> None:
    program(programs, "sbatch", {})
    program(programs, "scontrol", {
        "show partition --oneliner": SCONTROL,
        "show config": "ClusterName = alpha\nMaxArraySize = 1001\n",
    })  # fmt: skip
    program(
        programs, "sinfo", {"--all --Node --noheader --format=%N|%t|%c|%m|%G|%P": "n1|idle|4|16000|gpu:tesla:2|cpu*\n"}
    )
    found = detect()
    assert (found.name, found.max_tasks, found.required, found.notes) == ("alpha", 1001, (), ())
    assert found.programs == ("sinfo", "scontrol")
    assert [queue.name for queue in found.queues] == ["cpu", "debug"]
    assert [(host.name, host.gpu_type, host.partitions) for host in found.hosts] == [("n1", "tesla", ("cpu",))]

    import getpass

    user = getpass.getuser()
    options = "--noheader --parsable2 show"
    accounts = {f"{options} associations user={user} format=account": "lab42\nphysics\n"}
    program(programs, "sacctmgr", {**accounts, f"{options} user {user} format=defaultaccount": "\n"})
    found = detect()
    assert found.required == ("account",)
    assert "Your accounts: lab42, physics." in found.notes[0]
    program(programs, "sacctmgr", {**accounts, f"{options} user {user} format=defaultaccount": "lab42\n"})
    assert detect().required == ()


def test_grid_engine(programs: Path) -> None:
    program(programs, "qsub", {})
    program(programs, "qconf", {
        "-sql": "all.q\n",
        "-sq all.q": QCONF,
        "-spl": "smp\n",
        "-sp smp": "pe_name smp\nallocation_rule $pe_slots\n",
        "-sc": "gpu gpu INT <= YES JOB 0 0\n",
        "-se n1": "hostname n1\ncomplex_values gpu=8,slots=8\n",
    })  # fmt: skip
    program(programs, "qhost", {"-F -q": QHOST})
    found = detect()
    assert found.scheduler is Scheduler.GRID_ENGINE
    assert found.requests.cores is not None
    assert found.requests.gpus is not None
    assert (found.requests.cores.text, found.requests.gpus.text) == ("-pe smp {slots}", "-l gpu={count}")
    assert [(queue.name, queue.max_time) for queue in found.queues] == [("all.q", 86_400)]
    assert found.hosts[0].gpus == 8, "of which qhost shows those that no job uses"


@pytest.mark.parametrize(
    ("version", "argument", "nodes", "expected"),
    [
        ("pbs_version = 23.06.06\n", "-a -v -F json", NODES, Scheduler.OPENPBS),
        ("Version: 6.1.2\n", "-x", XML, Scheduler.TORQUE),
    ],
)
def test_pbs(programs: Path, version: str, argument: str, nodes: str, expected: Scheduler) -> None:
    program(programs, "qsub", {})
    program(
        programs, "qstat", {"--version": version, "-Q -f": QSTAT, "-B -f": "Server: pbs1\n    default_queue = workq\n"}
    )
    program(programs, "pbsnodes", {argument: nodes})
    found = detect()
    assert found.scheduler is expected
    assert [(queue.name, queue.is_default, queue.cores) for queue in found.partitions] == [
        ("workq", True, 8),
        ("route", False, None),
    ]
    assert [(host.name, host.cpus) for host in found.hosts] == [("n1", 8)]


def test_no_scheduler_and_one_that_does_not_answer(programs: Path) -> None:
    with pytest.raises(MissingOnHost, match="this host has no scheduler"):
        detect()
    program(programs, "sbatch", {})
    program(programs, "scontrol", {})
    with pytest.raises(ProgramFailed, match="asking the scheduler with scontrol failed"):
        detect()


HOSTILE = ("x" * 200_000, "a\0b", "-wide", "a\x1b[31mb")


def hostile(directory: Path, name: str, answers: dict[str, str]) -> None:
    """As `program`, but of any bytes; any other arguments are a failure that tells much."""
    text = '#!/bin/bash\ncase "$*" in'
    for number, (words, answer) in enumerate(answers.items()):
        (directory.parent / f"{name}-{number}").write_bytes(answer.encode())
        text += f"\n  '{words}') exec /bin/cat {directory.parent}/{name}-{number} ;;"
    (directory / name).write_text(f"{text}\n*) printf '%0300000d' 0 >&2; exit 1 ;; esac\n")
    (directory / name).chmod(0o755)


def test_names_of_grid_engine_that_are_none_reach_no_command_line(programs: Path) -> None:
    hostile(programs, "qconf", {
        "-sql": "\n".join(["q1", *HOSTILE]), "-sq q1": "qname q1\nslots 4\nh_rt INFINITY\n", "-sc": "",
        "-spl": "\n".join(HOSTILE),
    })  # fmt: skip
    nodes = "\n".join(
        f"{name}  lx-amd64  4  1  4  4  0.1  16G  1G  0  0\n  q1  BIP  0/0/4" for name in ("n1", *HOSTILE)
    )
    hostile(programs, "qhost", {"-F -q": f"HOSTNAME ARCH NCPU\n{nodes}\n"})
    found = detect(Scheduler.GRID_ENGINE)
    assert [queue.name for queue in found.queues] == ["q1"]
    assert [host.name for host in found.hosts] == ["n1"]


def test_names_of_slurm_that_are_none_reach_no_file(programs: Path) -> None:
    import getpass

    shown = "\n".join(f"PartitionName={name} Default=NO MaxTime=1:00:00 State=UP" for name in ("q1", *HOSTILE))
    hostile(programs, "scontrol", {"show partition --oneliner": shown, "show config": f"ClusterName = {HOSTILE[0]}\n"})
    nodes = "\n".join(f"{name}|idle|4|16000|gpu:{name}:2|q1" for name in ("n1", *HOSTILE))
    hostile(programs, "sinfo", {"--all --Node --noheader --format=%N|%t|%c|%m|%G|%P": nodes})
    user = f"user={getpass.getuser()}"
    accounts = f"--noheader --parsable2 show associations {user} format=account"
    hostile(programs, "sacctmgr", {accounts: "\n".join([*(f"a{number}" for number in range(999)), *HOSTILE])})
    found = detect(Scheduler.SLURM)
    assert [host.name for host in found.hosts] == ["n1"]
    profile = profile_from(found, Path(f"{profile_name(found)}.toml"), "2026-11-23")
    text = profile_text(profile, comments(found))
    assert (len(text) < 3000, "xxxx" in text, "\0" in text) == (True, False, False)


def test_a_long_line_of_a_failing_program_is_cut(programs: Path) -> None:
    hostile(programs, "qconf", {})
    with pytest.raises(ProgramFailed) as failure:
        detect(Scheduler.GRID_ENGINE)
    assert max(map(len, failure.value.last_lines)) < 600
