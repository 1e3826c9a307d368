"""A Grid Engine of a user's own: Debian's daemons in a directory, on ports of their own, without root.

All that is in the cell was found by trying Grid Engine 8.1.9 of Debian 12.
"""

from __future__ import annotations

import re
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.labs import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.conftest import User

PROGRAMS = Path("/usr/lib/gridengine")
_SHARED = Path("/usr/share/gridengine")
_HOST = "localhost"
_BOOTSTRAP = """\
admin_user {user}
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {root}/default/common;{place}/qmaster
binary_path {programs}
qmaster_spool_dir {place}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""
_SETTINGS = {
    "execd_spool_dir": "{place}/execd",
    "min_uid": "0",
    "min_gid": "0",
    "mailer": "/bin/true",
    "load_report_time": "00:00:01",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 accounting_flush_time=00:00:00",
}
_SCHEDULING = {
    "schedule_interval": "0:0:1",
    "flush_submit_sec": "1",
    "flush_finish_sec": "1",
    "load_formula": "slots",
    "job_load_adjustments": "NONE",
}
# GPUs as many sites have them, and the resource types of TSUBAME 3.
RESOURCES = ("gpu", "s_gpu", "node_f")
_HOST_VALUES = {"hostname": _HOST, "complex_values": "gpu=4,s_gpu=4,node_f=2,slots=8"}
_HOST_LISTS = ("user_lists", "xuser_lists", "projects", "xprojects")
_ENVIRONMENT = {
    "pe_name": "smp",
    "slots": "999",
    "user_lists": "NONE",
    "xuser_lists": "NONE",
    "start_proc_args": "/bin/true",
    "stop_proc_args": "/bin/true",
    "allocation_rule": "$pe_slots",
    "control_slaves": "FALSE",
    "job_is_first_task": "TRUE",
    "urgency_slots": "min",
    "accounting_summary": "FALSE",
    "qsort_args": "NONE",
}


@dataclass
class GridEngine:
    """A cell of one host with 8 slots and 4 GPUs; a queue `all.q`, and `short.q` of at most a minute.

    `place` is a directory of `user` on a path without blanks. `environment` leads clients to the cell.
    """

    user: User
    place: Path
    environment: dict[str, str] = field(default_factory=dict)
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def up(self) -> None:
        """Start the daemons, and wait until jobs can run."""
        root = self.place / "root"
        master, execution = free_ports(2)
        self.environment = {
            "SGE_ROOT": str(root),
            "SGE_CELL": "default",
            "SGE_CLUSTER_NAME": f"p{master}",
            "SGE_QMASTER_PORT": str(master),
            "SGE_EXECD_PORT": str(execution),
        }
        architecture = self.run(str(_SHARED / "util/arch")).strip()
        self.run("mkdir", "-p", f"{root}/default/common", f"{root}/bin", f"{root}/lib", "qmaster", "execd", "tmp")
        for link, target in (
            (f"bin/{architecture}", PROGRAMS),
            (f"lib/{architecture}", PROGRAMS),
            ("util", _SHARED / "util"),
            ("utilbin", PROGRAMS),
        ):
            self.run("ln", "-s", str(target), str(root / link))
        words = {"user": self.user.name, "root": root, "place": self.place, "programs": PROGRAMS}
        self._write(root / "default/common/bootstrap", _BOOTSTRAP.format(**words))
        self._write(root / "default/common/act_qmaster", f"{_HOST}\n")
        # The name that a connection of the loopback device resolves to, and this host's own.
        self._write(root / "default/common/host_aliases", f"{_HOST} {socket.gethostname()}\n")
        settings = {name: value.format(**words) for name, value in _SETTINGS.items()}
        configuration = _changed((_SHARED / "default-configuration").read_text(), settings)
        self._write(self.place / "configuration", configuration)
        spool = f"{root}/default/common;{self.place}/qmaster"
        self.run(str(PROGRAMS / "spoolinit"), "classic", "libspoolc", spool, "init")
        for what, file in (
            ("configuration", self.place / "configuration"),
            ("complexes", _SHARED / "util/resources/centry"),
            ("usersets", _SHARED / "util/resources/usersets"),
            ("managers", self.user.name),
        ):
            self.run(str(PROGRAMS / "spooldefaults"), what, str(file))
        self._start("sge_qmaster")
        eventually(lambda: "global" in self.run("qhost", status=None), "qmaster to answer", 20)
        self._configure()
        self._start("sge_execd")
        eventually(lambda: bool(re.search(r"^localhost .* [\d.]+G ", self.run("qhost"), re.M)), "execd to report", 20)

    def _configure(self) -> None:
        self.run("qconf", "-as", _HOST, status=None)
        self.change("-Msconf", _changed(self.run("qconf", "-ssconf"), _SCHEDULING))
        # A consumable JOB is counted once for each job, YES for each slot of it.
        resources = (f"{name} {name} INT <= YES {'JOB' if name == 'gpu' else 'YES'} 0 0\n" for name in RESOURCES)
        self.change("-Mc", self.run("qconf", "-sc") + "".join(resources))
        lists = dict.fromkeys((*_HOST_LISTS, "load_scaling", "usage_scaling", "report_variables"), "NONE")
        self.change("-Ae", _text({**_HOST_VALUES, **lists}))
        self.change("-Ap", _text(_ENVIRONMENT))
        template = self.run("qconf", "-sq", status=None)  # with no queue there, the values of a new one
        queue = {"hostlist": _HOST, "pe_list": "smp", "slots": "8", "tmpdir": f"{self.place}/tmp"}
        queue |= {"shell": "/bin/sh", "notify": "00:00:05", "load_thresholds": "NONE"}
        for order, (name, limit) in enumerate((("all.q", "INFINITY"), ("short.q", "00:01:00"))):
            self.change("-Aq", _changed(template, {**queue, "qname": name, "h_rt": limit, "seq_no": str(order)}))

    def down(self) -> None:
        """End the daemons and all jobs."""
        self.run("qdel", "-f", "-u", "*", status=None)
        eventually(lambda: not self.run("qstat", "-s", "r", "-u", "*", status=None), "jobs to end", 20)
        for daemon in self._daemons[::-1]:
            daemon.kill()  # at SIGTERM, the qmaster takes ten seconds
            daemon.wait()

    def run(self, *argv: str, status: int | None = 0, directory: Path | None = None) -> str:
        """Run a program as the user of this cell; what it printed on both streams."""
        where = directory or self.place
        done = self.user.run(*argv, cwd=where, env={**self.environment, "LC_ALL": "C"}, status=status)
        return done.stdout + done.stderr

    def _write(self, path: Path, text: str) -> None:
        self.user.run("tee", path, cwd=self.place, input=text)

    def change(self, option: str, text: str) -> None:
        """Add or change an object with an option of qconf that reads a file."""
        path = self.place / f"change{option}-{time.monotonic_ns()}"
        self._write(path, text)
        said = self.run("qconf", option, str(path))
        assert re.search(r"added|modified|changed", said), said

    def _start(self, name: str) -> None:
        environment = {**self.user.environment, **self.environment, "SGE_ND": "true"}  # in the foreground
        with open(self.place / f"{name}.log", "wb") as log:
            argv = self.user.command(str(PROGRAMS / name))
            self._daemons.append(
                subprocess.Popen(argv, cwd=self.place, env=environment, stdout=log, stderr=log, start_new_session=True)
            )


def running(user: User, place: Path) -> Iterator[GridEngine]:
    """A cell in the new directory `place` while a fixture has it."""
    user.run("mkdir", "-p", place, cwd=Path("/"))
    cell = GridEngine(user, place)
    try:
        cell.up()
        yield cell
    finally:
        cell.down()


def free_ports(count: int) -> tuple[int, ...]:
    """Ports of the loopback device that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = tuple(found.getsockname()[1] for found in sockets)
    for found in sockets:
        found.close()
    return ports


def _changed(text: str, values: dict[str, str]) -> str:
    """Lines `NAME VALUE` with other values; a long value goes on after a backslash."""
    text = re.sub(r"\\\n\s*", "", text)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return "".join(
        f"{name} {values.get(name, value.strip())}\n" for name, _, value in (line.partition(" ") for line in lines)
    )


def _text(values: dict[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())
