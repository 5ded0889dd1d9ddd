"""A Slurm cluster of one machine: a controller, a daemon for each node, and a munge of its own.

Nodes are as large as we say, whatever the machine has. Everything is below one directory; clients are told of the cluster by
`SLURM_CONF`.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from deploy.testbed.closed_network import ClosedNetwork
from deploy.testbed.daemons import TestbedError, environment, free_ports, kill, marked, run, wait_until

LOOPBACK = "127.0.0.1"
READY_SECONDS = 15.0
IDLE_STATES = "idle,mix,alloc"

CONFIGURATION = """\
ClusterName={name}
SlurmctldHost={host}({controller})
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool/%n
SlurmctldPidFile={place}/run/slurmctld.pid
SlurmdPidFile={place}/run/slurmd-%n.pid
SlurmctldLogFile={place}/log/slurmctld.log
SlurmdLogFile={place}/log/slurmd-%n.log
# A node may be larger than this machine.
SlurmdParameters=config_overrides
ProctrackType=proctrack/{tracking}
TaskPlugin=task/{task}
JobAcctGatherType=jobacct_gather/{gather}
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={place}/log/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2,sched_min_interval=0,batch_sched_delay=0
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
KillWait=5
MinJobAge={remembered}
SlurmctldTimeout=30
SlurmdTimeout={patience}
TreeWidth=65533
GresTypes=gpu
DefMemPerCPU=100
NodeName=DEFAULT CPUs={cores} Boards=1 SocketsPerBoard=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory={memory} State=UNKNOWN
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=2-00:00:00 DefaultTime=60 State=UP
PartitionName=short Nodes=ALL MaxTime=30 DefaultTime=10 PriorityTier=2 State=UP
"""
# Each node by itself, for its port; the first of a cluster has what can be asked for by name.
NODE = "NodeName={node} NodeHostname={host} NodeAddr={address} Port={port}{features}"
SPECIAL = " Feature=avx512 Gres=gpu:2"
GRES = "NodeName={node} Name=gpu File=/dev/null\nNodeName={node} Name=gpu File=/dev/zero\n"


CGROUPS = """\
CgroupPlugin=cgroup/v2
ConstrainRAMSpace=yes
"""


class Shape(NamedTuple):
    """How a cluster is made.

    The controller forgets a job `remembered` seconds after its end, and gives a node up that is silent for `patience` seconds.
    """

    nodes: int = 2
    cores: int = 4
    memory_mb: int = 8_000
    remembered: int = 300
    patience: int = 60
    cgroups: bool = False
    """Whether jobs are in cgroups of version 2, which the machine's systemd must delegate to the daemons of nodes."""


class SlurmCluster:
    """One cluster below `place`, whose processes bear the mark of `root`. Its nodes may stand in a closed network, which must be open."""

    def __init__(self, root: Path, name: str, shape: Shape, network: ClosedNetwork | None = None) -> None:
        self.name = name
        self.shape = shape
        self.network = network
        self.place = root / name
        self._root = root

    @property
    def configuration(self) -> Path:
        """The file that clients are told of by SLURM_CONF."""
        return self.place / "slurm.conf"

    @property
    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [f"{self.name}{number}" for number in range(1, self.shape.nodes + 1)]

    def run(self, *argv: str, within: float = 30.0) -> str:
        """Run one of Slurm's tools against this cluster and return what it printed."""
        return run(argv, self._environment(), within=within)

    def start(self) -> None:
        """Start all daemons and wait until every node takes jobs."""
        self._write()
        self._start_munge()
        self.run("slurmctld", "-f", str(self.configuration))
        for node in self.nodes:
            self.start_node(node)
        wait_until(f"the nodes of {self.name}", self._ready, READY_SECONDS)

    def start_node(self, node: str) -> None:
        """Start the daemon of a node, which takes up again what still runs there."""
        argv = ["slurmd", "-f", str(self.configuration), "-N", node]
        self.run(*(self.network.inside(*argv) if self.network else argv))

    def kill_daemon(self, node: str) -> None:
        """Kill the daemon of a node; its jobs run on."""
        daemons = [each for each in marked(self._root, "slurmd") if node in each.cmdline()]
        if not daemons:
            raise TestbedError(f"{node} has no daemon")
        kill(daemons)

    def lose_node(self, node: str) -> None:
        """Kill the daemon of a node and all that runs there, so that nobody is left who could tell of it."""
        self.kill_daemon(node)
        there = [each for each in self._orphans() if _environment_of(each).get("SLURMD_NODENAME") == node]
        # Their keepers first, who would tell how they ended; and what has left the batch system's own processes, too.
        kill([*{keeper for each in there if (keeper := _keeper_of(each))}, *there])

    def empty(self, within: float = 10.0) -> None:
        """Cancel all jobs and wait for their end: they would outlive the daemons of their nodes."""
        try:
            if jobs := self._jobs():
                self.run("scancel", *jobs, within=within)
                wait_until(f"the jobs of {self.name} to end", lambda: not self._jobs(), within)
        except TestbedError:
            return  # without its controller; whoever stops the daemons ends what is left
        for job in self._orphans():
            job.kill()

    def _environment(self) -> dict[str, str]:
        return environment(self._root, {"SLURM_CONF": str(self.configuration)})

    def _jobs(self) -> list[str]:
        return self.run("squeue", "-h", "-o", "%i", within=5.0).split()

    def _ready(self) -> bool:
        try:
            ready = self.run("sinfo", "-h", "-N", "-t", IDLE_STATES, "-o", "%N", within=5.0)
        except TestbedError:
            return False
        return set(self.nodes) <= set(ready.split())

    def _orphans(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            found = _environment_of(process)
            if "SLURM_JOB_ID" in found and found.get("SLURM_CONF") == str(self.configuration):
                yield process

    # --- files ------------------------------------------------------------------------------------

    def _write(self) -> None:
        for name in ("state", "run", "log", *(f"spool/{node}" for node in self.nodes)):
            (self.place / name).mkdir(parents=True, exist_ok=True)
        controller, *ports = free_ports(1 + len(self.nodes))
        self.configuration.write_text(
            CONFIGURATION.format(
                name=self.name,
                host=_hostname(),
                controller=self.network.host if self.network else LOOPBACK,
                port=controller,
                munge=self._munge_socket,
                place=self.place,
                remembered=self.shape.remembered,
                patience=self.shape.patience,
                tracking="cgroup" if self.shape.cgroups else "linuxproc",
                task="cgroup" if self.shape.cgroups else "none",
                gather="cgroup" if self.shape.cgroups else "none",
                cores=self.shape.cores,
                memory=self.shape.memory_mb,
                nodes="\n".join(self._node_lines(ports)),
            )
        )
        if self.shape.cgroups:
            (self.place / "cgroup.conf").write_text(CGROUPS)
        (self.place / "gres.conf").write_text(GRES.format(node=self.nodes[0]))

    def _node_lines(self, ports: Sequence[int]) -> Iterator[str]:
        address = self.network.nodes if self.network else LOOPBACK
        for number, (node, port) in enumerate(zip(self.nodes, ports, strict=True)):
            features = SPECIAL if number == 0 else ""
            yield NODE.format(node=node, host=_hostname(), address=address, port=port, features=features)

    @property
    def _munge_socket(self) -> Path:
        return self.place / "run" / "munge.socket"

    def _start_munge(self) -> None:
        place = self.place / "munge"
        place.mkdir(mode=0o700, exist_ok=True)
        key = place / "key"
        if not key.exists():
            key.touch(mode=0o600)
            key.write_bytes(os.urandom(1024))
        files = {
            "key-file": key,
            "socket": self._munge_socket,
            "pid-file": self.place / "run" / "munged.pid",
            "log-file": place / "munged.log",
            "seed-file": place / "seed",
        }
        # Forced, as the directories above may be closed to others: who reaches the socket is root here anyway.
        self.run("munged", "--force", *(f"--{option}={path}" for option, path in files.items()))


def _hostname() -> str:
    """Return what the controller compares its own name with."""
    return socket.gethostname().partition(".")[0]


def _keeper_of(process: psutil.Process) -> psutil.Process | None:
    """Return the process of Slurm's that started a step's; None if it is another's, or has ended meanwhile."""
    try:
        parent = process.parent()
        return parent if parent and parent.name() == "slurmstepd" else None
    except psutil.NoSuchProcess:
        return None


def _environment_of(process: psutil.Process) -> dict[str, str]:
    """Return a process's environment, nothing of one that has ended since."""
    try:
        return process.environ()
    except (OSError, psutil.Error):
        return {}
