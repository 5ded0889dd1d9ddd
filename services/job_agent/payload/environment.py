"""Builds the environment variables of a payload from an empty set, so that it has no secret of the agent."""

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
    """Return a payload's environment: a few harmless variables of the agent, those of the user, and `WMS_*`.

    `agent` and `user` are the variables of the agent and of the job description. `passed` names further variables of the agent
    that payloads get. The user's replace the agent's, but not `WMS_*`. `work` and `scratch` are the payload's directories.
    `gateway` has the variables for its way to a gateway.
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
