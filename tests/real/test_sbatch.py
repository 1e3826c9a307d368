"""Jobs of `ctk sbatch` on a real Slurm, in a real image: no log is lost, and Slurm's own words are in it."""

from __future__ import annotations

import json
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.jobs.adversary import check_scripts
from tests.real.jobs import Jobs
from tests.real.labs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.conftest import PracticeCluster


@pytest.fixture
def jobs(lab: PracticeCluster, ground: Path, base_image: Path) -> Iterator[Jobs]:
    folder = ground / f"jobs-{time.monotonic_ns()}"
    folder.mkdir()
    subprocess.run(["chown", lab.person.name, str(folder)], check=True)
    yield Jobs(lab, folder, base_image)
    lab.person.run("scancel", "--me", cwd=folder, env=lab.environment)


def test_the_first_job_in_a_folder_without_logs(jobs: Jobs) -> None:
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
    assert sorted(path.name for path in jobs.folder.iterdir()) == ["first.sbatch", "logs"]


def test_slurm_s_own_words_are_in_the_log(jobs: Jobs) -> None:
    """Four jobs side by side, since a time limit is a minute at least: too long, cancelled, requeued, an array."""
    sleep = ("--gpus", "0", "--", "sh", "-c", "echo begun; sleep 600")
    jobs.write("limited", "--time", "1", *sleep)
    jobs.write("cancelled", *sleep)
    jobs.write("again", "--gpus", "0", "--", "sh", "-c", 'echo begun; test -n "$SLURM_RESTART_COUNT" || sleep 600')
    jobs.write("sweep", "--gpus", "0", "--array", "0-2", "--", "sh", "-c", "exit $SLURM_ARRAY_TASK_ID")
    limited, cancelled, again, sweep = map(jobs.submit, ("limited", "cancelled", "again", "sweep"))

    for stem in (f"limited-{limited}", f"cancelled-{cancelled}", f"again-{again}"):
        eventually(lambda stem=stem: "begun" in jobs.log(stem), f"the log of {stem}")  # type: ignore[misc]
    jobs.run("scancel", cancelled)
    jobs.run("scontrol", "requeue", again)

    assert jobs.finish(cancelled) == "CANCELLED"
    assert f"JOB {cancelled} ON" in jobs.log(f"cancelled-{cancelled}")
    assert "CANCELLED AT" in jobs.log(f"cancelled-{cancelled}")

    # Slurm holds a requeued job back until the credential of its first run has expired: 20 s in a lab. Let go earlier
    # (StartTime=now), it would be killed on the same node now and then: "Job credential revoked".
    assert jobs.finish(again) == "COMPLETED", jobs.log(f"again-{again}")
    both = jobs.log(f"again-{again}")
    order = [both.find(words) for words in ("run 1", "DUE TO JOB REQUEUE", "run 2", "ended with status 0")]
    assert order == sorted(order), both
    assert -1 not in order, both

    for task in range(3):
        stem = f"sweep-{sweep}_{task}"
        eventually(lambda stem=stem: "ended with" in jobs.log(stem), f"the log of {stem}")  # type: ignore[misc]
        assert f"ended with status {task}" in jobs.log(stem)

    eventually(lambda: jobs.ended(limited), "the time limit", seconds=150)
    assert jobs.show(limited, "JobState") == "TIMEOUT"
    assert "DUE TO TIME LIMIT" in jobs.log(f"limited-{limited}")
    assert not list(jobs.folder.glob("*.log")), "every log is in logs/"


def test_a_job_in_the_wrong_folder_fails_instead_of_completing(jobs: Jobs) -> None:
    jobs.write("lost", "--gpus", "0", "--", "true")
    log = jobs.folder / "elsewhere.txt"
    job = jobs.submit("lost", "--chdir=/nonexistent", f"--output={log}")
    assert jobs.finish(job) == "FAILED"
    assert f"should run in {jobs.folder}" in log.read_text()


def test_slurm_reads_every_value_as_it_was_meant(jobs: Jobs) -> None:
    resources = ("--time", "1-2:3", "--mem", "512", "--cpus-per-task", "2", "--nodes", "2", "--gpus", "tesla:2")
    directives = ("--directive=--comment=two words # three", "--directive=--nice=5")
    jobs.write("full", *resources, *directives, "--", "true")
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


def test_several_nodes_each_run_the_command(jobs: Jobs) -> None:
    jobs.write("two", "--gpus", "0", "--nodes", "2", "--", "sh", "-c", "echo rank $SLURM_PROCID of $SLURM_NTASKS")
    job = jobs.submit("two")
    assert jobs.finish(job) == "COMPLETED"
    log = jobs.log(f"two-{job}")
    assert "rank 0 of 2" in log
    assert "rank 1 of 2" in log


def test_submit_prints_the_number_and_slurm_s_refusal(jobs: Jobs) -> None:
    person, env = jobs.lab.person, jobs.lab.environment
    words = ("sbatch", "-J", "now", "--image", str(jobs.image), "--gpus", "0", "--submit")
    done = person.ctk(*words, "--json", "--", "true", cwd=jobs.folder, env=env)
    document = json.loads(done.stdout)
    assert jobs.finish(document["job_id"]) == "COMPLETED"
    assert "ended with status 0" in (jobs.folder / document["log"]).read_text()
    refused = person.ctk(*words, "--partition", "nowhere", "--", "true", cwd=jobs.folder, env=env, status=4)
    assert "invalid partition" in refused.stderr


def test_without_a_cluster_the_practice_one_is_named(jobs: Jobs) -> None:
    words = ("sbatch", "-J", "x", "--image", str(jobs.image), "--submit", "--", "true")
    nowhere = {"SLURM_CONF": str(jobs.folder / "missing.conf")}
    done = jobs.lab.person.ctk(*words, cwd=jobs.folder, env=nowhere, status=3)
    assert "ctk lab up" in done.stderr


def test_scripts_of_the_worst_words_pass_shellcheck(tmp_path: Path) -> None:
    scripts = check_scripts(tmp_path, count=60, seed_number=2)
    paths = []
    for number, script in enumerate(scripts):
        paths.append(tmp_path / f"{number}.sbatch")
        paths[-1].write_text(script.text)
    done = subprocess.run(["shellcheck", "-s", "bash", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
