"""Builds the environment variables of a payload. It begins with none, so that no secret of the agent is passed on."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from wms.ids import Epoch, JobId, PilotId, SiteName

PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL")
OURS = "WMS_"


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
    processors: int = 1,
    passed: tuple[str, ...] = (),
    gateway: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    """Return a payload's environment: variables of the agent that are no secrets, those of the job description, and `WMS_*`.

    `agent` are all variables of the agent; only those in PASSED and `passed` are taken. `user` are those of the job
    description. They replace the agent's, but not `WMS_*`. `work` and `scratch` are the payload's directories, `processors`
    the number that it may use. `gateway` has the variables with the gateway's address and the payload's token file.
    """
    base = {name: agent[name] for name in (*PASSED, *passed) if name in agent}
    places = {"HOME": str(work), "TMPDIR": str(scratch), "PWD": str(work)}
    own = {name: value for name, value in user.items() if not name.startswith(OURS)}
    ours = {
        "WMS_JOB_ID": str(job_id),
        "WMS_EPOCH": str(epoch),
        "WMS_SITE": site,
        "WMS_PILOT": pilot_id,
        "WMS_PROCESSORS": str(processors),
        "WMS_WORK": str(work),
        "WMS_SCRATCH": str(scratch),
        **gateway,
    }
    # What Python prints is seen as it is printed, not when its program ends.
    ours_first = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    return ours_first | base | places | own | ours
