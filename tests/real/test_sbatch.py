"""Jobs of `ctk sbatch` on a real Slurm, in a real image: no log is lost, and Slurm's own words are in it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.jobs.adversary import check_scripts
from tests.pages import blocks
from tests.real.jobs import Jobs
from tests.real.labs import eventually
from toolkit.scheduler.values import parse_array

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster, User


@pytest.fixture
def jobs(lab: PracticeCluster, ground: Path, base_image: Path) -> Iterator[Jobs]:
    directory = ground / f"jobs-{time.monotonic_ns()}"
    directory.mkdir()
    subprocess.run(["chown", lab.user.name, str(directory)], check=True)
    yield Jobs(lab, directory, base_image)
    lab.user.run("scancel", "--me", cwd=directory, env=lab.environment)


def test_the_first_job_in_a_directory_without_logs(jobs: Jobs) -> None:
    words = ["it's", "$(touch pwned)", "`id`", "two\nlines", "日本", "--nv", "\\", '"']
    report = "import json, os, sys; print('GOT', json.dumps([sys.argv[1:], os.environ['GREETING']])); sys.exit(7)"
    greeting = "$(touch pwned) `id` 'é' $HOME"
    jobs.write(
        "first", "--gpus", "tesla:1", "--env", f"GREETING={greeting}", "--", "python3", "-s", "-c", report, *words
    )
    job = jobs.submit("first")
    assert jobs.finish(job) == "FAILED"
    log = jobs.log(f"first-{job}")
    assert jobs.show(job, "ExitCode") == "7:0", log
    got = re.search("^GOT (.*)$", log, re.MULTILINE)
    assert got, log
    assert json.loads(got[1]) == [words, greeting]
    assert re.search(r"CUDA_VISIBLE_DEVICES=\d", log)
    assert "ended with status 7" in log
    assert sorted(path.name for path in jobs.directory.iterdir()) == ["first.sbatch", "logs"]


def test_array_each_task_has_its_own_log(jobs: Jobs) -> None:
    jobs.write("sweep", "--gpus", "0", "--array", "0-2", "--", "sh", "-c", "exit $SLURM_ARRAY_TASK_ID")
    sweep = jobs.submit("sweep")
    for task in range(3):
        stem = f"sweep-{sweep}_{task}"
        eventually(lambda stem=stem: "ended with" in jobs.log(stem), f"the log of {stem}")  # type: ignore[misc]
        assert f"ended with status {task}" in jobs.log(stem)
    assert not list(jobs.directory.glob("*.log")), "every log is in logs/"


def test_checkpoint_of_the_manual_is_written(jobs: Jobs) -> None:
    """Cancelled after its first steps, the program of the manual saves and ends with its own status."""
    (program,) = (block.text for block in blocks("docs/manual.md", "python") if "signal" in block.text)
    assert len(program.split("\n\n", 1)[1].splitlines()) <= 10
    (jobs.directory / "train.py").write_text(program)
    jobs.write("manual", "--gpus", "0", "--", "python3", "-u", "train.py")
    job = jobs.submit("manual")
    eventually(lambda: "\ntraining\n" in jobs.log(f"manual-{job}"), "the program to start")
    jobs.run("scancel", job)
    assert jobs.finish(job) == "CANCELLED"
    log = jobs.log(f"manual-{job}")
    assert re.search(r"^saved at step \d+$", log, re.MULTILINE), log
    # The script passes on a signal that Slurm has sent to the program, too: it may find Python shutting down.
    assert re.search(r"ended with status (3|143)\n", log), log


def test_log_of_a_bind_mounted_logs_is_whole(jobs: Jobs) -> None:
    """The device number is the same on both sides, yet a rename crosses the mount: `mv` would copy and cut the log."""
    (jobs.directory / "elsewhere").mkdir()
    (jobs.directory / "logs").mkdir()
    subprocess.run(["chown", "-R", jobs.lab.user.name, str(jobs.directory)], check=True)
    subprocess.run(["mount", "--bind", str(jobs.directory / "elsewhere"), str(jobs.directory / "logs")], check=True)
    try:
        jobs.write("bound", "--gpus", "0", "--", "echo", "the words")
        job = jobs.submit("bound")
        assert jobs.finish(job) == "COMPLETED"
        log = jobs.log(f"bound-{job}")
        assert "\nthe words\n" in log
        assert "ended with status 0" in log
    finally:
        subprocess.run(["umount", "--lazy", str(jobs.directory / "logs")], check=True)


@pytest.mark.parametrize("name", ["50%j", "5%split", "100% of it", "%", "%%x"])
def test_directory_with_a_percent_sign_keeps_the_log(jobs: Jobs, name: str) -> None:
    jobs.directory = jobs.directory / name
    jobs.directory.mkdir()
    subprocess.run(["chown", jobs.lab.user.name, str(jobs.directory)], check=True)
    jobs.write("percent", "--gpus", "0", "--", "true")
    job = jobs.submit("percent")
    assert jobs.finish(job) == "COMPLETED"
    assert "ended with status 0" in jobs.log(f"percent-{job}")


def test_directory_with_a_backslash_is_refused(jobs: Jobs) -> None:
    jobs.directory = jobs.directory / "back\\slash"
    jobs.directory.mkdir()
    words = ("sbatch", "-J", "x", "--image", str(jobs.image), "--", "true")
    done = jobs.lab.user.ctk(*words, cwd=jobs.directory, env=jobs.lab.environment, status=2)
    assert "backslash" in done.stderr
    assert not list(jobs.directory.iterdir())


def test_several_tasks_keep_their_environment_without_export(jobs: Jobs) -> None:
    show = 'echo "rank $SLURM_PROCID: $PYTHONNOUSERSITE"'
    jobs.write("bare", "--gpus", "0", "--nodes", "2", "--", "sh", "-c", show)
    job = jobs.submit("bare", "--export=NONE")
    assert jobs.finish(job) == "COMPLETED"
    log = jobs.log(f"bare-{job}")
    assert "rank 0: 1\n" in log
    assert "rank 1: 1\n" in log


def test_submit_is_not_misled_by_variables_of_slurm(jobs: Jobs) -> None:
    misleading = {
        "SBATCH_JOB_NAME": "other",
        "SBATCH_OUTPUT": "other.txt",
        "SBATCH_ARRAY_INX": "0-3",
        "SBATCH_PARTITION": "gpu",
        "SLURM_RESTART_COUNT": "4",
        "SLURM_TIME_FORMAT": "%s",
    }
    words = ("sbatch", "-J", "named", "--image", str(jobs.image), "--gpus", "0", "--submit", "--json", "--", "true")
    environment = {**jobs.lab.environment, **misleading}
    document = json.loads(jobs.lab.user.ctk(*words, cwd=jobs.directory, env=environment).stdout)
    assert jobs.finish(document["job_id"]) == "COMPLETED"
    log = (jobs.directory / document["log"]).read_text()
    assert "named, run 1 on" in log
    assert jobs.show(document["job_id"], "Partition") == "gpu", (
        "a default of the user's stays where the script has none"
    )


def test_log_planted_by_another_user_is_not_printed(jobs: Jobs, second_user: User) -> None:
    """In a directory of another user, links to a private key wait under the names of the next logs."""
    secret = jobs.directory / "id_ed25519"
    jobs.lab.user.run("tee", secret, cwd=jobs.directory, input="PRIVATE KEY\n")
    secret.chmod(0o600)
    jobs.directory = jobs.directory / "shared"
    jobs.directory.mkdir()
    jobs.directory.chmod(0o777)
    last = int(jobs.run("sbatch", "--parsable", "--hold", "--output=/dev/null", "--wrap=true"))
    plant = f"mkdir -m 777 logs; for n in $(seq {last} {last + 20}); do ln -s {secret} logs/train-$n.log; done"
    second_user.run("sh", "-c", plant, cwd=jobs.directory)
    jobs.write("train", "--gpus", "0", "--", "echo", "trained")
    restart = {**jobs.lab.environment, "SLURM_RESTART_COUNT": "1"}
    submit = ("sbatch", "--parsable", "train.sbatch")
    job = jobs.lab.user.run(*submit, cwd=jobs.directory, env=restart).stdout.strip()
    assert jobs.finish(job) == "COMPLETED"
    log = jobs.log(f"train-{job}")
    assert "\ntrained\n" in log
    assert "PRIVATE" not in log
    assert secret.read_text() == "PRIVATE KEY\n"


def test_a_job_in_the_wrong_directory_fails_instead_of_completing(jobs: Jobs) -> None:
    jobs.write("lost", "--gpus", "0", "--", "true")
    log = jobs.directory / "elsewhere.txt"
    job = jobs.submit("lost", "--chdir=/nonexistent", f"--output={log}")
    assert jobs.finish(job) == "FAILED"
    assert f"should run in {jobs.directory}" in log.read_text()


def test_slurm_reads_every_value_as_it_was_meant(jobs: Jobs) -> None:
    resources = ("--time", "1-2:3", "--mem", "512", "--cpus-per-task", "2", "--nodes", "2", "--gpus", "tesla:2")
    directives = ("--directive=--comment=two words # three", "--directive=--nice=5")
    jobs.write("full", "--cluster", "slurm", *resources, *directives, "--", "true")
    job = jobs.submit("full", "--hold")
    read = {
        field: jobs.show(job, field)
        for field in ("TimeLimit", "MinMemoryNode", "CPUs/Task", "NumNodes", "Comment", "Nice", "TresPerJob")
    }
    assert read == {
        "TimeLimit": "1-02:03:00",
        "MinMemoryNode": "512M",
        "CPUs/Task": "2",
        "NumNodes": "2-2",
        "Comment": "two words # three",
        "Nice": "5",
        "TresPerJob": "gres:gpu:tesla:2",
    }


@settings(max_examples=12, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    nodes=st.integers(1, 2),
    tasks=st.integers(1, 2),
    cores=st.integers(1, 2),
    gpus=st.none() | st.tuples(st.sampled_from(["", "tesla:"]), st.integers(1, 2)),
    memory=st.none() | st.integers(1, 900),
    seconds=st.none() | st.integers(1, 10**7 - 1),
    array=st.none()
    | st.tuples(st.integers(0, 20), st.integers(1, 20), st.integers(1, 3), st.none() | st.integers(1, 5)),
)
def test_slurm_understands_what_was_asked(
    jobs: Jobs,
    nodes: int,
    tasks: int,
    cores: int,
    gpus: tuple[str, int] | None,
    memory: int | None,
    seconds: int | None,
    array: tuple[int, int, int, int | None] | None,
) -> None:
    words = ["--nodes", str(nodes), "--ntasks-per-node", str(tasks), "--cpus-per-task", str(cores)]
    expected = {"NumNodes": f"{nodes}-{nodes}", "NumTasks": str(nodes * tasks), "CPUs/Task": str(cores)}
    requested = f"{gpus[0]}{gpus[1] * nodes}" if gpus else ""
    words += ["--gpus", requested or "0"]
    expected["TresPerJob"] = requested and f"gres:gpu:{requested}"
    if memory is not None:
        words += ["--mem", f"{memory}M"]
        expected["MinMemoryNode"] = f"{memory}M"
    if seconds is not None:
        words += ["--time", f"0:0:{seconds}"]
        hours, minutes = divmod(-(-seconds // 60), 60)  # Slurm counts whole minutes
        days = f"{hours // 24}-" if hours >= 24 else ""
        expected["TimeLimit"] = f"{days}{hours % 24:02}:{minutes:02}:00"
    if array is not None:
        first, count, step, limit = array
        last = first + count * step
        words += ["--array", f"{first}-{last}:{step}{f'%{limit}' if limit else ''}"]
    jobs.write("asked", *words, "--cluster", "slurm", "--force", "--no-gpu-gate", "--", "true")
    job = jobs.submit("asked", "--hold")
    assert {field: jobs.show(job, field) for field in expected} == expected
    if array is not None:
        shown = parse_array(jobs.show(job, "ArrayTaskId"))  # a list, or a range where that is shorter
        tasks_shown = {task for some in shown.ranges for task in range(some.first, some.last + 1, some.step)}
        assert (tasks_shown, shown.limit) == (set(range(first, last + 1, step)), limit)
    jobs.run("scancel", job)


def test_several_nodes_each_run_the_command(jobs: Jobs) -> None:
    jobs.write("two", "--gpus", "0", "--nodes", "2", "--", "sh", "-c", "echo rank $SLURM_PROCID of $SLURM_NTASKS")
    job = jobs.submit("two")
    assert jobs.finish(job) == "COMPLETED"
    log = jobs.log(f"two-{job}")
    assert "rank 0 of 2" in log
    assert "rank 1 of 2" in log


def test_submit_prints_the_number_and_slurm_s_refusal(jobs: Jobs) -> None:
    user, env = jobs.lab.user, jobs.lab.environment
    words = ("sbatch", "-J", "now", "--image", str(jobs.image), "--gpus", "0", "--submit")
    done = user.ctk(*words, "--json", "--", "true", cwd=jobs.directory, env=env)
    document = json.loads(done.stdout)
    assert jobs.finish(document["job_id"]) == "COMPLETED"
    assert "ended with status 0" in (jobs.directory / document["log"]).read_text()
    refused = user.ctk(
        *words, "--cluster", "slurm", "--partition", "nowhere", "--", "true", cwd=jobs.directory, env=env, status=4
    )
    assert "invalid partition" in refused.stderr


def test_without_a_cluster_the_practice_one_that_is_up_is_named(jobs: Jobs) -> None:
    words = ("sbatch", "-J", "x", "--image", str(jobs.image), "--submit", "--", "true")
    nowhere = {"SLURM_CONF": str(jobs.directory / "missing.conf")}
    done = jobs.lab.user.ctk(*words, cwd=jobs.directory, env=nowhere, status=3)
    assert 'Your practice cluster is up: eval "$(ctk lab env' in done.stderr


def test_scripts_of_the_worst_words_pass_shellcheck(tmp_path: Path) -> None:
    scripts = check_scripts(tmp_path, count=60, seed_number=2)
    gated = [script for script in scripts if "gpu_gate" in script.text]
    # shellcheck takes three times as long for a script with the gate, of which one line differs.
    scripts = [script for script in scripts if script not in gated] + gated[:8]
    assert len(gated) > 8
    paths = []
    for number, script in enumerate(scripts):
        paths.append(tmp_path / f"{number}.sbatch")
        paths[-1].write_text(script.text)
    done = subprocess.run(["shellcheck", "-s", "bash", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
