"""Jobs made of the worst words there are, and the check that what runs is what was asked.

`check_scripts` runs each script with an `apptainer` on PATH that writes down its argument list; `make test` has a
small share with a fixed seed, `make soak` the large ones.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from toolkit.jobs.defaults import JobRequest, complete
from toolkit.jobs.dialects.known import DIALECTS
from toolkit.jobs.dialects.slurm import SLURM
from toolkit.jobs.scripts import make_script
from toolkit.scheduler.programs import Scheduler
from toolkit.support.errors import WrongInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.jobs.dialects.dialect import Dialect
    from toolkit.jobs.model import Script

ON_ONE_LINE = (
    *("$(touch pwned)", "`touch pwned`", "$HOME", "${IFS}", "\\", "'", '"', "''", "it's", " ", "~/x", "$'x'", "$((1))"),
    *(
        "#SBATCH --x",
        "#",
        ";",
        "&&",
        "|",
        ">x",
        "<",
        "*",
        "?",
        "[a]",
        "{a,b}",
        "!",
        "--",
        "-x",
        "--nv",
        "=",
        "A=b",
        "%",
    ),
    *("“quoted”", "‘it’", "日本語", "é", "\u00a0", "train.py", "0.1"),
)
CONTROLS = ("\n", "\r\n", "\t", "\u2028", "\x7f", "\x1b[31m", "\udce9")


def _joined(fragments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(fragments, max_size=5).map("".join)


LINES = _joined(st.sampled_from(ON_ONE_LINE))
WORDS = _joined(st.sampled_from(ON_ONE_LINE + CONTROLS) | st.text(max_size=3).filter(lambda text: "\0" not in text))
COMMANDS = st.lists(WORDS, max_size=4).map(lambda rest: ("program", *rest))
VARIABLES = st.sampled_from(["A", "PYTHONPATH", "_x1"])
FILES = LINES.filter(lambda word: "/" not in word and word not in ("", ".", ".."))

# Every value here can be used, so that the job must not be refused …
GOOD = st.tuples(
    st.sampled_from(["x", "keras-bert.lr-0.1", "_1"]),
    FILES,
    st.builds(
        JobRequest,
        command=COMMANDS,
        resources=st.fixed_dictionaries({"gpus": st.sampled_from([None, "0", "1", "tesla:2"])}),
        binds=st.lists(
            st.sampled_from(["/my data:/data", "/$(touch pwned):/d:ro", "/it's", '/"`id`"']), max_size=2
        ).map(tuple),
        environment=st.lists(st.builds("{}={}".format, VARIABLES, LINES), max_size=2).map(tuple),
        directives=st.sampled_from([(), ("--comment=two words # and more",), ("--comment=$(touch pwned)",)]),
    ),
)
# … and here each may be anything: the job is refused, or runs as it was asked.
ANYTHING = st.tuples(
    st.just("x") | WORDS,
    st.just("trial.sif") | WORDS.filter(lambda word: "/" not in word and word not in ("", ".", "..")),
    st.builds(
        JobRequest,
        command=COMMANDS | st.lists(WORDS, min_size=1, max_size=3).map(tuple),
        resources=st.fixed_dictionaries(
            {"gpus": st.none() | WORDS, "time": st.none() | WORDS, "qos": st.none() | WORDS}
        ),
        binds=st.lists(WORDS, max_size=1).map(tuple),
        environment=st.lists(st.builds("{}={}".format, VARIABLES | WORDS, WORDS), max_size=1).map(tuple),
        directives=st.lists(WORDS.map(lambda word: f"--comment={word}"), max_size=1).map(tuple),
    ),
)

VARIABLES_OF: dict[Scheduler, Callable[[str, str], dict[str, str]]] = {
    Scheduler.SLURM: lambda name, directory: {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NAME": name,
        "SLURM_SUBMIT_DIR": directory,
    },
    Scheduler.GRID_ENGINE: lambda name, _: {"JOB_ID": "7", "JOB_NAME": name, "SGE_TASK_ID": "undefined"},
    Scheduler.OPENPBS: lambda name, directory: {
        "PBS_JOBID": "7.pbs1",
        "PBS_JOBNAME": name,
        "PBS_O_WORKDIR": directory,
    },
    Scheduler.TORQUE: lambda name, directory: {
        "PBS_JOBID": "7.pbs1",
        "PBS_JOBNAME": name,
        "PBS_O_WORKDIR": directory,
    },
}

_RECORDER = """#!/bin/sh
printf '%s\\0' "$@" > "$RECORD"
"""


def check_scripts(directory: Path, *, count: int, seed_number: int, dialect: Dialect = SLURM) -> list[Script]:
    """Try `count` jobs of either sort in `directory`; return the scripts of those that were not refused, and ran."""
    (directory / "bin").mkdir()
    recorder = directory / "bin" / "apptainer"
    recorder.write_text(_RECORDER)
    recorder.chmod(0o755)
    ran: list[Script] = []
    many = settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))

    @seed(seed_number)
    @many
    @given(GOOD)
    def good(asked: tuple[str, str, JobRequest]) -> None:
        ran.append(runs_as_asked(*asked, directory, dialect))

    @seed(seed_number)
    @many
    @given(ANYTHING)
    def anything(asked: tuple[str, str, JobRequest]) -> None:
        with contextlib.suppress(WrongInput):
            ran.append(runs_as_asked(*asked, directory, dialect))

    good()
    anything()
    assert not (directory / "pwned").exists()
    return ran


def runs_as_asked(name: str, image: str, request: JobRequest, directory: Path, dialect: Dialect = SLURM) -> Script:
    """Run the job's script. Raises WrongInput where a value is refused."""
    if dialect is not SLURM:
        request = replace(request, directives=tuple(map(_of_qsub, request.directives)))
        if request.resources["gpus"] == "tesla:2":
            request = replace(request, request="-l {type}={count}")
    job = complete(
        request, name=name, image=Path(image), recipe=None, directory=directory, userns=False, dialect=dialect
    )
    script = make_script(job, directory / "x.sbatch", dialect)
    assert what_runs(script, directory) == what_was_asked(image, request)
    return script


def _of_qsub(directive: str) -> str:
    return (
        "-m ea" if directive.startswith("--comment=two") or "(" in directive else directive.replace("--comment=", "-m ")
    )


def what_was_asked(image: str, request: JobRequest) -> list[str]:
    """The argument list that the runtime has to get, put together from the request and nothing else."""
    gpu = ["--nv"] if request.resources["gpus"] not in (None, "0") else []
    binds = [word for bind in dict.fromkeys(request.binds) for word in ("--bind", bind)]
    variables = ["env", *request.environment] if request.environment else []
    return ["--quiet", "exec", *gpu, *binds, f"./{image}", *variables, *request.command]


def what_runs(script: Script, directory: Path) -> list[str]:
    """Run `script` as its scheduler would, and return the argument list that the runtime got."""
    job = script.job
    dialect = DIALECTS[script.scheduler]
    lines = script.text.encode("utf-8").splitlines()
    prefix = f"{dialect.words.prefix} ".encode()
    head = [line[len(prefix) :].decode() for line in lines[: lines.index(b"")] if line.startswith(prefix)]
    assert head == list(dialect.directives(job)), "no option more, and none less"
    assert not any(line.startswith(prefix) for line in lines[lines.index(b"") :])
    script.path.write_text(script.text, encoding="utf-8")
    image = directory / job.image
    image.touch()
    record = directory / "record"
    record.unlink(missing_ok=True)
    environment = {
        "PATH": f"{directory / 'bin'}:{os.environ['PATH']}",
        "RECORD": str(record),
        **VARIABLES_OF[script.scheduler](job.name, str(directory)),
    }
    done = subprocess.run(["bash", script.path], cwd=directory, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    image.unlink()
    return [os.fsdecode(word) for word in record.read_bytes().split(b"\0")[:-1]]
