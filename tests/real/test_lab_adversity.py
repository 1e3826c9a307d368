"""A lab where something is wrong: daemons killed, a port taken, a strange home, a full disk, a node without power."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.real.labs import NOTHING, OwnLab, eventually, traces
from toolkit.lab import LabPlan, cluster, down, up
from toolkit.lab.ports import choose_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import User

pytestmark = pytest.mark.slurm


@pytest.fixture
def own(ordinary_user: User, ground: Path) -> Iterator[OwnLab]:
    """A lab of the ordinary user that is not up yet; whatever a test leaves of it is cleaned away."""
    directory = ground / f"adversity-{time.monotonic_ns()}"
    directory.mkdir()
    shutil.chown(directory, ordinary_user.name)
    lab = OwnLab(ordinary_user, directory, f"a{time.monotonic_ns() % 10**9}")
    yield lab
    if lab.name in ordinary_user.ctk("lab", "list", cwd=directory, env=lab.settings).stdout.split():
        lab.ctk("down")
    subprocess.run(["rm", "-rf", str(directory)], check=True)


def a_job_runs(lab: OwnLab) -> None:
    assert lab.finish(lab.submit("exit 3"))["exit_status"] == 3


def test_a_lab_whose_daemons_were_killed_is_noticed_and_cleaned(own: OwnLab) -> None:
    before = traces(own)
    place = own.up("--nodes", "2")
    own.submit("echo $$ > pid; sleep 987")
    eventually(lambda: (own.directory / "pid").exists() and (own.directory / "pid").read_text() != "", "the job")
    job = int((own.directory / "pid").read_text())
    for pid, words in traces(own, place).processes.items():
        if str(place / "munge.key") in words or "slurmctld -D" in words or "slurmd -D" in words:
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: '"crashed"' in own.run(str(own.user.program), "lab", "list", "--json"), "the crash to show")
    assert psutil.pid_exists(job), "the job does not need its daemons"
    assert "has crashed" in own.ctk("status", status=1)
    for command in (("kill-node", "n1"), ("restore-node", "n1"), ("env",), ("shell",)):
        refusal = own.ctk(*command, status=3)
        assert refusal.startswith(f"Error: The lab '{own.name}' has crashed"), "nothing but that, at once"

    second = own.up("--nodes", "2")
    assert second != place
    assert not place.exists()
    assert not psutil.pid_exists(job)
    a_job_runs(own)
    for member in traces(own, second).processes:
        os.kill(member, signal.SIGKILL)
    own.ctk("down")
    assert traces(own).beyond(before) == NOTHING


def hit_during_up(own: OwnLab, number: signal.Signals, seconds: float) -> tuple[int, str]:
    """Send a signal to `ctk lab up`, so many seconds after it has written the lab down; its status and its words."""
    record = own.user.home / ".local/state/ctk/labs" / f"{own.name}.json"
    argv = [str(own.user.program), "lab", "up", "--name", own.name, "--nodes", "32"]
    starting = subprocess.Popen(
        own.user.command(*argv), env=own.user.environment, cwd=own.directory, stderr=subprocess.PIPE, text=True
    )
    while not record.exists() and starting.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    starting.send_signal(number)
    _, words = starting.communicate(timeout=60)
    return starting.returncode, words


DELAYS = (0, 0.05, 0.1, 0.2, 0.4)


def test_down_cleans_what_a_killed_up_leaves(own: OwnLab) -> None:
    before = traces(own)
    unfinished = 0
    for delay in DELAYS:
        hit_during_up(own, signal.SIGKILL, delay)
        unfinished += '"crashed"' in own.run(str(own.user.program), "lab", "list", "--json")
        own.ctk("down")
        assert traces(own).beyond(before) == NOTHING
    assert unfinished, "it was killed half-way at least once"


def test_ctrl_c_during_up_leaves_nothing(own: OwnLab) -> None:
    before = traces(own)
    statuses = []
    for delay in DELAYS:
        status, words = hit_during_up(own, signal.SIGINT, delay)
        assert "Traceback" not in words
        statuses.append(status)
        if status == 0:
            own.ctk("down")
        assert traces(own).beyond(before) == NOTHING
    assert 130 in statuses, "it was interrupted at least once"


def test_two_labs_side_by_side(own: OwnLab) -> None:
    other = OwnLab(own.user, own.directory, f"{own.name}b")
    own.up("--nodes", "2")
    other.up("--nodes", "3")
    try:
        assert len(own.run("srun", "-N2", "hostname").split()) == 2
        assert len(other.run("srun", "-N3", "hostname").split()) == 3
        both = own.user.ctk("lab", "env", cwd=own.directory, status=2)
        assert f"{own.name}, {other.name}" in both.stderr
        own.ctk("down")
        a_job_runs(other)
    finally:
        other.ctk("down")


def test_a_port_that_was_wanted_is_taken(own: OwnLab) -> None:
    before = traces(own)
    first = choose_ports(3)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", first + 1))
        stranger.listen()
        refusal = own.ctk("up", "--nodes", "2", "--port", str(first), status=3)
        assert f"port {first + 1} is in use" in refusal
        assert traces(own).beyond(before) == NOTHING
    own.up("--nodes", "2", "--port", str(first))
    a_job_runs(own)


@pytest.mark.parametrize("taken", [0, 2])
def test_a_port_is_taken_in_the_last_moment(taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody comes between our look at a port and the start of slurmctld (0) or a slurmd (2): others are tried."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    steps: list[str] = []
    first = choose_ports(3)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", first + taken))
        stranger.listen()
        answers = iter([first])
        monkeypatch.setattr(cluster, "choose_ports", lambda *wanted: next(answers, None) or choose_ports(*wanted))
        lab = up(LabPlan(name=f"race{taken}", nodes=2, gpus_per_node=0), on_step=steps.append)
        assert lab.port != first
    assert "another program uses one of the ports; trying others" in steps
    down(lab)
    assert not lab.place.directory.exists()


def test_a_daemon_that_cannot_start_says_why_and_its_log_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    honest = cluster.slurm_conf
    monkeypatch.setattr(cluster, "slurm_conf", lambda *facts: honest(*facts) + "SelectType=select/none-such\n")
    with pytest.raises(cluster.ProgramFailed, match="the lab did not start: slurmctld exited") as caught:
        up(LabPlan(name="broken", nodes=1))
    assert any("none-such" in line or "SelectType" in line for line in caught.value.last_lines)
    assert caught.value.log is not None
    assert caught.value.log.is_relative_to(tmp_path)
    assert caught.value.log.read_text()
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    down(up(LabPlan(name="broken", nodes=1)))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_home_on_another_file_system_with_a_long_path_and_blanks(own: OwnLab) -> None:
    """/dev/shm is a file system of its own; 250 bytes are more than a socket's path may have."""
    root = f"/dev/shm/{own.name}"
    home = "/".join([root, "a b $HOME 日本", *["x" * 50] * 4])
    own.user.run("mkdir", "-p", home, cwd=own.directory)
    own.settings["HOME"] = home
    try:
        before = traces(own)
        own.up("--nodes", "2")
        job = own.submit("pwd; exit 3", "--chdir", home, "--output", "%x-%j.log", "--job-name", "far")
        assert own.finish(job)["exit_status"] == 3
        log = own.run("cat", f"{home}/far-{job}.log")
        assert log.strip() == home
        own.run("rm", f"{home}/far-{job}.log")
        own.ctk("down")
        assert traces(own).beyond(before) == NOTHING
    finally:
        subprocess.run(["rm", "-rf", root], check=True)


def in_a_world_where(own: OwnLab, script: str, status: int) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a world of its own, where file systems can be mounted; `"$@"` is `ctk lab`."""
    world = ("unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c", script, "sh")
    done = own.user.run(*world, own.user.program, "lab", cwd=own.directory, status=status)
    assert "Traceback" not in done.stderr
    return done


def test_no_room_for_a_lab(own: OwnLab) -> None:
    before = traces(own)
    small = "mount -t tmpfs -o size=4m none /var/tmp && mount -t tmpfs -o size=4m none /tmp"
    done = in_a_world_where(own, f'{small} && "$@" up --name {own.name}', 3)
    assert (
        "no usable directory for the lab's sockets and logs: /tmp: only 4.0 MiB free; /var/tmp: only 4.0 MiB"
        in done.stderr
    )
    assert traces(own).beyond(before) == NOTHING


def test_no_room_for_the_state(own: OwnLab) -> None:
    before = traces(own)
    home = own.directory / "full"
    own.user.run("mkdir", home, cwd=own.directory)
    full = f"mount -t tmpfs -o size=16k none {home} && dd if=/dev/zero of={home}/x status=none; export HOME={home}"
    done = in_a_world_where(own, f'{full}; "$@" up --name {own.name}', 3)
    assert "cannot write" in done.stderr
    assert "No space left on device" in done.stderr
    assert traces(own).beyond(before) == NOTHING


def test_a_lab_goes_down_from_a_full_disk(own: OwnLab) -> None:
    """Everything full, the lab's own directory and the state: `down` needs no room."""
    mounted = "mount -t tmpfs -o size=80m none /tmp && mkdir /tmp/home && export HOME=/tmp/home"
    script = (
        f'{mounted} && "$@" up --name {own.name} --nodes 2 && '
        f'{{ dd if=/dev/zero of=/tmp/x bs=1M status=none; "$@" down; find /tmp -type f -o -name "ctk-*"; }}'
    )
    done = in_a_world_where(own, script, 0)
    assert f"The lab '{own.name}' is down" in done.stdout
    assert done.stdout.splitlines()[-1] == "/tmp/x", "nothing else is left"
    assert done.stdout.count("/tmp/") == 1


def test_nodes_lose_their_power_and_their_jobs_run_again(own: OwnLab) -> None:
    """n1 is back before the controller has missed it; n2 stays away."""
    place = own.up("--nodes", "3", "--gpus-per-node", "0")
    script = 'echo run ${SLURM_RESTART_COUNT:-0} on $SLURMD_NODENAME; [ -n "$SLURM_RESTART_COUNT" ] || sleep 987'
    first = own.submit(script, "--nodelist=n1", "--output=first.log", "--open-mode=append")
    second = own.submit(script, "--exclude=n1", "--output=second.log", "--open-mode=append")
    logs = [own.directory / "first.log", own.directory / "second.log"]
    eventually(lambda: all(log.exists() for log in logs), "the logs of the first runs")
    eventually(lambda: [log.read_text() for log in logs] == ["run 0 on n1\n", "run 0 on n2\n"], "the first runs")
    own.ctk("kill-node", "n1")
    own.ctk("kill-node", "n2")
    assert "is already down" in own.ctk("kill-node", "n2", status=2)
    left = traces(own, place).processes.values()
    assert not [words for words in left if "SLURMD_NODENAME=n1" in words or "SLURMD_NODENAME=n2" in words]
    own.ctk("restore-node", "n1")
    assert "is up" in own.ctk("restore-node", "n1", status=2)

    eventually(lambda: "node-down" in [found["code"] for found in own.status()["findings"]], "n2 to be missed")
    assert own.finish(first, seconds=120)["nodes"] == "n1"
    assert own.finish(second, seconds=120)["nodes"] == "n3"
    for job in (first, second):
        assert [run["state"] for run in own.finished(job)] == ["NODE_FAIL", "COMPLETED"]
    assert [log.read_text() for log in logs] == ["run 0 on n1\nrun 1 on n1\n", "run 0 on n2\nrun 1 on n3\n"]
    own.ctk("restore-node", "n2")
    assert {node["state"] for node in own.status()["nodes"]} == {"idle"}


def test_a_job_s_environment_is_its_submitter_s_not_the_daemons(own: OwnLab) -> None:
    """Labs are started from anywhere, from within a job of another lab as well."""
    own.settings |= {"SLURM_JOB_ID": "99", "SLURM_CONF": "", "SLURMD_NODENAME": "elsewhere", "SECRET": "of the starter"}
    own.up("--nodes", "1")
    own.settings.clear()
    job = own.submit("env -0 > env.txt", "--export=ALL")
    assert own.finish(job)["state"] == "COMPLETED"
    found = dict(pair.split("=", 1) for pair in (own.directory / "env.txt").read_text().split("\0") if pair)
    assert found["SLURM_JOB_ID"] == job
    assert found["SLURMD_NODENAME"] == "n1"
    assert found["HOME"] == str(own.user.home)
    assert found["PATH"].split(":", 1)[1] == own.user.environment["PATH"], "behind the lab's own programs"
    assert "SECRET" not in found
    assert not {name for name in found if name.startswith("CTK_LAB")}
    assert json.loads(own.ctk("env", "--json"))["environment"]["SLURM_CONF"] == found["SLURM_CONF"]


def test_a_user_s_settings_for_slurm_s_programs_do_not_reach_ctk(own: OwnLab) -> None:
    own.settings |= {"SLURM_TIME_FORMAT": "relative", "SLURM_CLUSTERS": "elsewhere", "SLURM_JWT": "x"}
    own.settings |= {"SQUEUE_STATES": "FAILED", "SCANCEL_STATE": "PENDING", "SCANCEL_USER": "nobody"}
    own.up("--nodes", "2")
    plain, own.settings = own.settings, {}
    job = own.submit("sleep 987")
    own.settings = plain
    eventually(lambda: {node["state"] for node in own.status()["nodes"]} == {"idle", "mixed"}, "the job to run")
    assert [queued["job"] for queued in own.status()["queue"]] == [job]
    own.ctk("kill-node", "n2")
    own.ctk("restore-node", "n2")
    shell = own.user.run(
        own.user.program,
        *("lab", "shell", "--name", own.name),
        cwd=own.directory,
        env=own.settings,
        input="squeue -h\n",
    )
    assert job in shell.stdout
    own.ctk("down")


def test_down_ends_what_a_killed_supervisor_can_no_longer_hold(own: OwnLab) -> None:
    """A job leaves a process with an empty environment and without its parent, then the supervisor is killed."""
    before = traces(own)
    place = own.up("--nodes", "1", "--gpus-per-node", "0")
    job = own.submit('(env -i setsid sh -c \'echo $$ > "$1"; exec sleep 987\' sh "$PWD/pid" &)\nsleep 1')
    eventually(lambda: (own.directory / "pid").exists() and (own.directory / "pid").read_text() != "", "the orphan")
    orphan = int((own.directory / "pid").read_text())
    assert own.finish(job)["state"] == "COMPLETED"
    assert psutil.pid_exists(orphan), "the job is over, what it started is not"
    supervisors = [
        pid for pid, words in traces(own, place).processes.items() if "supervisor.py" in words.split(" CTK_LAB")[0]
    ]
    assert supervisors
    for supervisor in supervisors:
        os.kill(supervisor, signal.SIGKILL)
    assert "is down; its processes and files were removed" in own.ctk("down")
    assert not psutil.pid_exists(orphan)
    assert traces(own).beyond(before) == NOTHING


def test_two_downs_at_once_leave_nothing(own: OwnLab) -> None:
    before = traces(own)
    own.up("--nodes", "1", "--gpus-per-node", "0")
    argv = own.user.command(own.user.program, "lab", "down", "--name", own.name)
    both = [
        subprocess.Popen(argv, env=own.user.environment, cwd=own.directory, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    words = [process.communicate(timeout=60)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], words
    assert "was stopped by another process" in "".join(words) or "there is no lab" in "".join(words)
    assert traces(own).beyond(before) == NOTHING


def test_a_killed_down_is_done_again(own: OwnLab) -> None:
    before = traces(own)
    place = own.up("--nodes", "1", "--gpus-per-node", "0")
    argv = own.user.command(own.user.program, "lab", "down", "--name", own.name)
    with subprocess.Popen(argv, env=own.user.environment, cwd=own.directory, stderr=subprocess.DEVNULL) as ending:
        eventually(lambda: not [word for word in traces(own, place).processes.values() if "munged " in word], "a kill")
        ending.kill()
    if own.name in own.user.ctk("lab", "list", cwd=own.directory).stdout.split():
        own.ctk("down")
    assert traces(own).beyond(before) == NOTHING


def test_a_lab_goes_down_on_a_host_with_a_new_name(own: OwnLab) -> None:
    """The host is renamed while the lab is up, and after a reboot, when neither the boot nor the directory is known."""
    before = traces(own)
    own.up("--nodes", "1", "--gpus-per-node", "0")
    record = own.user.home / ".local/state/ctk/labs" / f"{own.name}.json"
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "host": "the-old-name"}))
    assert own.status()["condition"] == "up"
    own.ctk("down")
    assert traces(own).beyond(before) == NOTHING
    own.user.run("tee", record, cwd=own.directory, input=json.dumps({**content, "host": "gone", "boot": "another"}))
    assert "--host-is-gone" in own.ctk("down", status=2)
    assert "--host-is-gone" in own.ctk("up", status=2)
    own.ctk("down", "--host-is-gone")
    assert traces(own).beyond(before) == NOTHING
