"""Builds the environment variables of a payload. It begins with none, so that no secret of the agent is passed on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from services.job_agent.payload.limit_enforcement import MIB
from wms.ids import Epoch, JobId, PilotId, SiteName

PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL")
OURS = "WMS_"
GPUS = "CUDA_VISIBLE_DEVICES"
THREADS = (
    "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "JULIA_NUM_THREADS", "GOMAXPROCS", "PYTHON_CPU_COUNT", "ROOT_MAX_THREADS", "CUBACORES", "TF_NUM_THREADS",
    "TF_LOOP_PARALLEL_ITERATIONS",
)  # fmt: skip
"""Variables by which libraries are told how many threads to start. HTCondor sets the same (STARTER_NUM_THREADS_ENV_VARS)."""


class Allotment(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload has of its node alone."""

    processors: int = 1
    gpus: tuple[str, ...] = ()
    """Its GPUs, by their names in CUDA_VISIBLE_DEVICES."""
    cpus: tuple[int, ...] = ()
    """The numbers of its processors. Empty: it may use all of the pilot's, as the pilot does not share them out."""


def environment_of(
    *,
    agent: Mapping[str, str],
    user: Mapping[str, str],
    job_id: JobId,
    epoch: Epoch,
    site: SiteName,
    pilot_id: PilotId,
    work: Path,
    scratch: Path,
    allotted: Allotment,
    memory_bytes: int | None = None,
    passed: tuple[str, ...] = (),
    told: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return a payload's environment: variables of the agent that are no secrets, those of the job description, and `WMS_*`.

    `agent` are all variables of the agent; only those in PASSED and `passed` are taken. `user` are those of the job
    description. They replace the agent's, and the numbers of threads, but not `WMS_*` and the GPUs. `work` and `scratch` are
    the payload's directories, `allotted` is what it has of its node, `memory_bytes` the memory that it may use. `told` has
    further variables of ours: about the site, and with the gateway's address and the payload's token file.
    """
    base = {name: agent[name] for name in (*PASSED, *passed) if name in agent}
    places = {"HOME": str(work), "TMPDIR": str(scratch), "PWD": str(work)}
    own = {name: value for name, value in user.items() if not name.startswith(OURS)}
    ours = {
        "WMS_JOB_ID": str(job_id),
        "WMS_EPOCH": str(epoch),
        "WMS_SITE": site,
        "WMS_PILOT": pilot_id,
        "WMS_PROCESSORS": str(allotted.processors),
        "WMS_GPUS": str(len(allotted.gpus)),
        **({} if memory_bytes is None else {"WMS_MEMORY_MB": str(memory_bytes // MIB)}),
        GPUS: ",".join(allotted.gpus),
        "WMS_WORK": str(work),
        "WMS_SCRATCH": str(scratch),
        # For programs that know HTCondor.
        "_CONDOR_SCRATCH_DIR": str(work),
        **told,
    }
    # What Python prints is seen as it is printed, not when its program ends.
    ours_first = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    threads = dict.fromkeys(THREADS, str(allotted.processors))
    return ours_first | threads | base | places | own | ours
