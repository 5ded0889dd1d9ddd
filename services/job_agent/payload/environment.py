"""What a payload finds in its environment: made from nothing, so that no secret of the agent's is in it."""

from collections.abc import Mapping
from pathlib import Path

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
) -> dict[str, str]:
    """Return a payload's environment: a few harmless names of the agent's, the user's own, and `WMS_*`.

    `passed` names more of the agent's that the site wants its payloads to see. The user's replace the agent's, and cannot
    replace ours.
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
    }
    # What Python prints is seen as it is printed, not when its program ends.
    ours_first = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
    return ours_first | base | places | own | ours
