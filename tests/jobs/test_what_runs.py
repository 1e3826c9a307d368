"""What a job's script really does, run by bash: the asked words reach the runtime, and bad places are noticed."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import examples
from tests.jobs.adversary import check_scripts
from toolkit.jobs.dialects.known import DIALECTS
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.dialects.text import script_text
from toolkit.jobs.model import Job
from toolkit.scheduler.programs import Scheduler

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scheduler", list(Scheduler))
def test_what_runs_is_what_was_asked(tmp_path: Path, scheduler: Scheduler) -> None:
    count = settings.default.max_examples
    ran = check_scripts(tmp_path, count=count, seed_number=1, dialect=DIALECTS[scheduler])
    assert len(ran) >= count * 0.6, "the good ones alone are nearly so many"


JOB = Job("x", "./trial.sif", ("program", "word"))


class Ground:
    """A directory with a script, an image and a runtime that prints what it was told."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "bin").mkdir()
        self.runtime("apptainer", "echo ran $*; exit 7")
        (directory / "trial.sif").touch()
        (directory / "x.sbatch").write_text(script_text(JOB, SLURM, ""))

    def runtime(self, name: str, body: str) -> None:
        path = self.directory / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def only_own_programs(self) -> None:
        """Fill the directory of programs with what the script needs, so that PATH can be that directory alone."""
        for name in ("bash", "date", "mkdir", "ln", "rm", "stat", "cat"):
            (self.directory / "bin" / name).symlink_to(f"/usr/bin/{name}" if name == "stat" else f"/bin/{name}")

    def run(
        self, *, log: str | None = "x-7.log", cwd: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the script as job 7; standard output goes to `log` in the directory, opened as Slurm opens it."""
        environment = {
            "PATH": f"{self.directory / 'bin'}:/usr/bin:/bin",
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_NAME": "x",
            "SLURM_SUBMIT_DIR": str(self.directory),
            **more,
        }
        command = ["bash", str(self.directory / "x.sbatch")]
        where = cwd or self.directory
        if log is None:
            return subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
        with (where / log).open("a") as file:
            done = subprocess.run(command, cwd=where, env=environment, stdout=file, stderr=file, text=True, check=False)
            file.write("*** Slurm's last words ***\n")
        return done


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_the_log_moves_to_logs_with_what_slurm_says_later(ground: Ground) -> None:
    done = ground.run()
    text = (ground.directory / "logs" / "x-7.log").read_text()
    assert done.returncode == 7
    assert "ran --quiet exec ./trial.sif program word" in text
    assert "ended with status 7" in text
    assert text.endswith("Slurm's last words ***\n")
    assert not (ground.directory / "x-7.log").exists()


def test_restart_of_the_same_job_follows_the_first_run_in_the_log(ground: Ground) -> None:
    ground.run()
    ground.run(SLURM_RESTART_COUNT="1")
    text = (ground.directory / "logs" / "x-7.log").read_text()
    assert text.index("run 1") < text.index("Slurm's last words") < text.index("run 2")
    assert text.count("Slurm's last words") == 2
    assert [path.name for path in ground.directory.glob("logs/*")] == ["x-7.log"]


def test_restart_count_inherited_from_another_job_is_not_believed(ground: Ground) -> None:
    ground.runtime("scontrol", "echo JobId=7 JobName=x Requeue=1 Restarts=0 BatchFlag=1")
    ground.run(SLURM_RESTART_COUNT="4")
    assert "run 1 on" in (ground.directory / "logs" / "x-7.log").read_text()


EARLIER = "ctk: job 7 of cluster unknown, x, run 1 on n1\nearlier words\n"


def _plant(ground: Ground, sort: str) -> None:
    """Something that lies at logs/x-7.log and that this job did not write."""
    (ground.directory / "logs").mkdir()
    log, secret = ground.directory / "logs" / "x-7.log", ground.directory / "secret"
    secret.write_text("earlier words" if sort == "hard link to a secret" else EARLIER)
    if sort == "link":
        log.symlink_to(secret)
    elif sort == "dangling link":
        log.symlink_to("/nonexistent/earlier words")
    elif sort in ("second name", "hard link to a secret"):
        log.hardlink_to(secret)
    elif sort == "pipe":
        os.mkfifo(log)
    elif sort == "somebody else's":
        log.write_text(EARLIER)
        os.chown(log, 65534, 65534)
    else:
        log.write_text(EARLIER.replace("job 7", "job 8") if sort == "another job's" else "earlier words\n")


@pytest.mark.parametrize("run", [1, 2])
@pytest.mark.parametrize(
    "sort",
    [
        *("link", "dangling link", "second name", "hard link to a secret", "pipe", "another job's", "without a header"),
        *(["somebody else's"] if os.geteuid() == 0 else []),  # only root can give a file away
    ],
)
def test_what_the_job_did_not_write_is_kept_aside_and_never_printed(ground: Ground, sort: str, run: int) -> None:
    _plant(ground, sort)
    before = (ground.directory / "logs" / "x-7.log").lstat()
    assert ground.run(SLURM_RESTART_COUNT=str(run - 1) if run > 1 else "").returncode == 7
    text = (ground.directory / "logs" / "x-7.log").read_text()
    assert f"run {run} on" in text
    assert "earlier words" not in text
    kept = (ground.directory / "logs" / "x-7.log.~1~").lstat()
    assert (kept.st_ino, kept.st_uid, kept.st_size) == (before.st_ino, before.st_uid, before.st_size)


def test_first_run_does_not_continue_the_log_of_an_earlier_job_of_that_number(ground: Ground) -> None:
    ground.run()
    earlier = (ground.directory / "logs" / "x-7.log").read_text()
    ground.run()
    assert (ground.directory / "logs" / "x-7.log").read_text().count("run 1 on") == 1
    assert (ground.directory / "logs" / "x-7.log.~1~").read_text() == earlier


@pytest.mark.parametrize("sort", ["link", "second name"])
def test_log_whose_name_was_taken_is_written_elsewhere(ground: Ground, sort: str) -> None:
    """Slurm has opened what a clone or a neighbour put at the log's name: the program's words must not go there."""
    profile = ground.directory / "profile"
    profile.write_text("mine\n")
    if sort == "link":
        (ground.directory / "x-7.log").symlink_to(profile)
    else:
        (ground.directory / "x-7.log").hardlink_to(profile)
    assert ground.run().returncode == 7
    assert profile.read_text() == "mine\n*** Slurm's last words ***\n"
    (log,) = ground.directory.glob("logs/x-7-*.log")
    assert "the log's name was taken" in log.read_text()
    assert "exec ./trial.sif program word" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_log_of_an_earlier_job_on_another_file_system_is_not_continued(ground: Ground) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        (ground.directory / "logs").symlink_to(elsewhere)
        ground.run()
        earlier = (ground.directory / "x-7.log").read_text()
        ground.run()
        assert (ground.directory / "logs" / "x-7.log").read_text().count("run 1 on") == 1
        assert (ground.directory / "x-7.log.earlier").read_text() == earlier
        ground.run(SLURM_RESTART_COUNT="1")
        assert (ground.directory / "logs" / "x-7.log").read_text().count("run ") == 2


def test_options_of_the_user_s_shell_change_nothing(ground: Ground) -> None:
    assert ground.run(SHELLOPTS="braceexpand:errexit:hashall:nounset:pipefail").returncode == 7
    assert "ended with status 7" in (ground.directory / "logs" / "x-7.log").read_text()


def test_log_on_a_full_disk_changes_neither_run_nor_status(ground: Ground) -> None:
    ground.runtime("apptainer", "touch ran; exit 7")
    with Path("/dev/full").open("w") as full:
        command = ["bash", str(ground.directory / "x.sbatch")]
        environment = {"PATH": f"{ground.directory / 'bin'}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "x"}
        done = subprocess.run(
            command,
            cwd=ground.directory,
            env={**environment, "SLURM_SUBMIT_DIR": str(ground.directory)},
            stdout=full,
            stderr=full,
            check=False,
        )
    assert done.returncode == 7
    assert (ground.directory / "ran").exists()


SIGNALS = ("TERM", "CONT", "USR1", "USR2", "INT", "HUP")


def _lost(ground: Ground, seed: int) -> str:
    """Run the script, send it one to six signals, some at once; its output where one was not passed on, else ""."""
    chance = random.Random(seed)  # noqa: S311
    environment = {"PATH": f"{ground.directory / 'bin'}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "x"}
    output = ground.directory / f"output-{seed}"
    with output.open("w") as file:
        script = subprocess.Popen(
            ["bash", str(ground.directory / "x.sbatch")],
            cwd=ground.directory,
            env={**environment, "SLURM_SUBMIT_DIR": str(ground.directory)},
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
        )
    with script:
        assert _said(output, ["begun"])
        sent = chance.sample(SIGNALS, chance.randint(1, len(SIGNALS)))
        time.sleep(chance.uniform(0, 0.3))
        for name in sent:
            time.sleep(chance.choice((0, 0, 0, chance.uniform(0, 0.1))))
            script.send_signal(getattr(signal, f"SIG{name}"))
        arrived = _said(output, [f"SIG{name} at" for name in sent])
    text = output.read_text()
    output.unlink()
    return "" if arrived and script.returncode == 0 else f"sent {sent}, status {script.returncode}:\n{text}"


def _said(output: Path, words: list[str]) -> bool:
    """Whether all of `words` come to stand in a script's output: within 20 s, for the machine may be busy."""
    deadline = time.monotonic() + 20
    while not all(word in output.read_text() for word in words):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_signals_at_random_moments_are_all_passed_on(ground: Ground) -> None:
    """bash loses one in ten that arrive in `wait` or `read` at the wrong moment. CTK_SIGNAL_RUNS asks for more."""
    # The program ends when its input does, which is when the block of `with script` is left.
    ground.runtime("apptainer", "trap '' TERM CONT USR1 USR2 INT HUP; echo begun; exec cat")
    with ThreadPoolExecutor(8) as pool:
        runs = range(int(os.environ.get("CTK_SIGNAL_RUNS") or examples(64).max_examples))
        assert [lost for lost in pool.map(lambda seed: _lost(ground, seed), runs) if lost] == []


def test_logs_on_another_file_system_gets_a_link(ground: Ground) -> None:
    elsewhere = Path("/dev/shm") / f"ctk-test-{os.getpid()}"
    assert ground.directory.stat().st_dev != Path("/dev/shm").stat().st_dev
    elsewhere.mkdir()
    try:
        (ground.directory / "logs").symlink_to(elsewhere)
        ground.run()
        assert (ground.directory / "logs" / "x-7.log").read_text().endswith("Slurm's last words ***\n")
    finally:
        subprocess.run(["rm", "-rf", str(elsewhere)], check=True)


def test_where_logs_cannot_be_made_the_job_still_runs(ground: Ground) -> None:
    (ground.directory / "logs").write_text("a file of the user's own")
    done = ground.run()
    text = (ground.directory / "x-7.log").read_text()
    assert done.returncode == 7
    assert f"the log stays at {ground.directory}/x-7.log" in text
    assert (ground.directory / "logs").read_text() == "a file of the user's own"


@pytest.mark.parametrize("program", ["ln", "mkdir"])
def test_where_logs_belongs_to_somebody_else_the_job_still_runs(ground: Ground, program: str) -> None:
    (ground.directory / "logs").mkdir()
    (ground.directory / "logs" / "x-7.log").write_text("an earlier run\n")
    ground.runtime(program, 'echo "no permission" >&2; exit 1')
    assert ground.run().returncode == 7
    text = (ground.directory / "x-7.log").read_text()
    assert "ran --quiet exec ./trial.sif program word" in text
    assert f"the log stays at {ground.directory}/x-7.log" in text
    assert (ground.directory / "logs" / "x-7.log").read_text() == "an earlier run\n"


def test_the_site_s_own_runtime_comes_first(ground: Ground) -> None:
    own = ground.directory / "the site's"
    own.mkdir()
    (own / "apptainer").symlink_to(ground.directory / "bin" / "another")
    ground.runtime("another", "echo the site ran $*")
    (ground.directory / "x.sbatch").write_text(script_text(replace(JOB, runtime=str(own / "apptainer")), SLURM, ""))
    ground.run()
    assert "the site ran --quiet exec" in (ground.directory / "logs" / "x-7.log").read_text()
    (own / "apptainer").unlink()
    ground.run(SLURM_JOB_ID="8", log="x-8.log")
    assert "\nran --quiet exec" in (ground.directory / "logs" / "x-8.log").read_text(), "a node without it has another"


def test_another_output_given_to_sbatch_is_left_alone(ground: Ground) -> None:
    assert ground.run(log="mine.txt").returncode == 7
    assert "ran --quiet exec" in (ground.directory / "mine.txt").read_text()
    assert not (ground.directory / "logs").exists()


def test_a_job_in_the_wrong_directory_fails_loudly(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> None:
    done = ground.run(log=None, cwd=tmp_path_factory.mktemp("elsewhere"))
    assert done.returncode == 1
    assert f"should run in {ground.directory}" in done.stderr
    assert "ran" not in done.stdout


def test_run_by_hand_it_says_what_it_is(ground: Ground) -> None:
    done = ground.run(log=None, SLURM_JOB_ID="")
    assert done.returncode == 2
    assert "Submit it: sbatch" in done.stderr


def test_a_missing_image_and_a_missing_runtime_are_named(ground: Ground) -> None:
    (ground.directory / "trial.sif").unlink()
    done = ground.run(log=None)
    assert (done.returncode, "there is no image ./trial.sif" in done.stderr) == (1, True)
    (ground.directory / "bin" / "apptainer").unlink()
    ground.only_own_programs()
    done = ground.run(log=None, PATH=str(ground.directory / "bin"))
    assert (done.returncode, "neither apptainer nor singularity" in done.stderr) == (127, True)


def test_singularity_serves_as_well_and_so_does_a_module(ground: Ground) -> None:
    (ground.directory / "bin" / "apptainer").unlink()
    ground.only_own_programs()
    path = str(ground.directory / "bin")
    # A module command is a function that comes through the environment, as sites export it, and is careless of set -u.
    module = '() { echo "$NOT_SET"; if [ "$2" = singularity ]; then PATH=$PATH:$HIDDEN; else return 1; fi; }'
    hidden = ground.directory / "hidden"
    hidden.mkdir()
    ground.runtime("singularity", "echo singularity $*")
    (ground.directory / "bin" / "singularity").rename(hidden / "singularity")
    with_module = {"BASH_FUNC_module%%": module, "HIDDEN": str(hidden)}
    assert "singularity --quiet exec" in ground.run(log=None, PATH=path, **with_module).stdout
    (hidden / "singularity").rename(ground.directory / "bin" / "singularity")
    assert "singularity --quiet exec" in ground.run(log=None, PATH=path).stdout


def test_lines_of_the_script_have_the_token_that_its_first_line_announces(ground: Ground) -> None:
    ground.run()
    ground.run(SLURM_RESTART_COUNT="1")
    text = (ground.directory / "logs" / "x-7.log").read_text()
    first, second = re.findall(r"^ctk: job 7 of .*, run \d on .*, token ([0-9a-f]{12})$", text, re.MULTILINE)
    assert first == second
    assert text.count(f"\nctk[{first}]: ") == len(re.findall(r"^ctk(?!: job)", text, re.MULTILINE)) > 2
    ground.run()
    assert first not in (ground.directory / "logs" / "x-7.log").read_text()


def test_a_restarted_job_keeps_the_token_of_a_log_on_another_file_system(ground: Ground) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        (ground.directory / "logs").symlink_to(elsewhere)
        ground.run()
        ground.run(SLURM_RESTART_COUNT="1")
        tokens = re.findall(r", token (\w+)$", (ground.directory / "logs" / "x-7.log").read_text(), re.MULTILINE)
    assert len(tokens) == 2
    assert len(set(tokens)) == 1
