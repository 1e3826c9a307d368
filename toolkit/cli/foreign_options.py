"""Options of sbatch, qsub and the runtime that users type by habit: those that ctk takes, and what to write instead."""

from __future__ import annotations

# The short options of sbatch that `ctk sbatch` takes, by the parameter. Elsewhere these letters mean other things.
SHORT_OPTIONS = {
    "sbatch": {
        "partition": "-p", "account": "-A", "qos": "-q", "time": "-t", "array": "-a", "constraint": "-C",
        "nodes": "-N", "ntasks": "-n", "cpus_per_task": "-c", "gpus": "-G",
    }
}  # fmt: skip
_LOG = "omit it: the log is always logs/NAME-ID.log"
_SBATCH = {
    "-A": "--account NAME",
    "-C": "--directive=--constraint=NAME",
    "-D": "omit it: the job runs in the directory where you submit it",
    "-G": "--gpus N",
    "-N": "--nodes N",
    "-a": "--array 1-10",
    "-c": "--cpus-per-task N",
    "-e": _LOG,
    "-n": "--ntasks N",
    "-p": "--partition NAME",
    "-q": "--qos NAME",
    "-t": "--time LIMIT",
    "-w": "--directive=--nodelist=NODES",
    "--constraint": "--directive=--constraint=NAME",
    "--error": _LOG,
    "--exclusive": "--directive=--exclusive",
    "--mail-type": "--directive=--mail-type=END",
    "--mail-user": "--directive=--mail-user=NAME@SITE",
    "--nodelist": "--directive=--nodelist=NODES",
    "--wrap": "--shell 'LINE'",
    "--gpus-per-node": "--gpus N, of the whole job",
    "--gres": "--gpus N or --gpus TYPE:N, of the whole job",
}
_QSUB = {
    "-A": "--account NAME",
    "-J": "--array 1-10",
    "-P": "--account NAME",
    "-V": "--env NAME for each variable",
    "-c": "omit -cwd: the job runs in the directory where you submit it",
    "-e": _LOG,
    "-g": "--group NAME",
    "-j": _LOG,
    "-l": "--gpus N, --time LIMIT or --mem SIZE; your site's own resource: --directive='-l NAME=VALUE'",
    "-p": "--cpus-per-task N; your site's own parallel environment: --request '-pe NAME {slots}'",
    "-q": "--partition QUEUE",
    "-t": "--array 1-10",
    "-v": "--env NAME",
}
_RUN = {
    "-B": "--bind SRC[:DST[:ro]]",
    "--env": "export NAME=VALUE before the command: the container shares this host's environment variables",
    "--gpus": "omit it: the container gets the GPUs of this host",
    "--nv": "omit it: the container gets the GPUs of this host",
}
_BY_COMMAND = {"run": _RUN, "sbatch": _SBATCH, "qsub": _QSUB, "script": {**_QSUB, **_SBATCH}}


def instead_of(option: str, command: str) -> str | None:
    """What to write for an option that the command of ctk (such as `sbatch`) does not have; None: nothing."""
    return _BY_COMMAND.get(command, {}).get(option)
