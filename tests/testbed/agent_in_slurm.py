"""Runs a payload as a job agent would in a job of a Slurm cluster with jobs in cgroups, in a machine of its own, and prints what became of it.

`python -m tests.testbed.agent_in_slurm`, as root under a systemd, prints one JSON object. `... agent DIRECTORY` is the job.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import psutil

from deploy.testbed.daemons import wait_until
from deploy.testbed.kernel_machine import SCRATCH, USER_ID
from deploy.testbed.slurm import Shape, SlurmCluster
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import Workplace
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.jobdesc.description import JobDescription
from wms.transfer import open_store

MEMORY_MB = 300
SECONDS = 60.0
TREE = Path(__file__).parents[2]
TOLD = Path(SCRATCH, "tmp", "told.json")
JOB = f"""#!/bin/sh
cd {TREE} && HOME={SCRATCH}/home TMPDIR={SCRATCH}/tmp exec {sys.executable} -m tests.testbed.agent_in_slurm agent
"""


async def agent(directory: Path) -> None:
    """Run a payload that does not end, and write to TOLD what this agent found and where the payload is."""
    store = open_store(f"file://{directory}/store")
    async with Workplace(
        root=directory / "run", store=store, site=SiteName("S"), pilot_id=PilotId("p")
    ) as workplace:
        payload = Payload(
            workplace, JobId(1), Epoch(1), JobDescription(executable="sleep", arguments=("1000",))
        )

        async def tell(pid: int) -> None:
            found = {
                "limits": workplace.limit_words,
                "fault": workplace.cgroups.fault,
                "pids": [os.getpid(), workplace.processes.shepherd_pid, pid],
                "cgroup": Path(f"/proc/{pid}/cgroup").read_text().strip(),
            }
            TOLD.with_suffix(".new").write_text(json.dumps(found))
            TOLD.with_suffix(".new").rename(TOLD)

        await payload.run(tell)


def observe() -> dict[str, object]:
    """Start a cluster, run the agent in a job of an ordinary user, cancel that, and return what was found."""
    cluster = SlurmCluster(
        Path(SCRATCH, "slurm"), "alpha", Shape(nodes=1, cores=1, memory_mb=500, cgroups=True)
    )
    cluster.place.mkdir(parents=True)
    cluster.start()
    script = Path(SCRATCH, "tmp", "job.sh")
    script.write_text(JOB)
    cluster.run("sbatch", f"--uid={USER_ID}", f"--mem={MEMORY_MB}", f"--chdir={SCRATCH}/tmp", str(script))
    wait_until("the payload to run", TOLD.exists, SECONDS)
    found: dict[str, object] = json.loads(TOLD.read_text())
    processes = [psutil.Process(pid) for pid in json.loads(TOLD.read_text())["pids"]]
    job = Path("/sys/fs/cgroup", str(found["cgroup"]).removeprefix("0::/")).parents[2]
    found["memory"] = (job / "memory.max").read_text().strip()
    for each in processes:  # so that none can end another: whatever ends them is Slurm
        each.send_signal(signal.SIGSTOP)
    cluster.run("scancel", f"--user={USER_ID}")
    wait_until("Slurm to end the job", lambda: not any(each.is_running() for each in processes), SECONDS)
    wait_until("Slurm to remove the job's cgroup", lambda: not job.exists(), SECONDS)
    wait_until(
        "the node to be idle", lambda: cluster.run("sinfo", "-h", "-o", "%t").split()[0] == "idle", SECONDS
    )
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["agent"]:
        asyncio.run(agent(Path(SCRATCH, "tmp", "agent")))
    else:
        print(json.dumps(observe()))
