"""Usage of payloads as it is recorded."""

from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.usage_sampling import Watched
from tests.unit.job_agent.examples import failing


async def test_who_cannot_be_watched_is_ended_and_nobody_else() -> None:
    faults: list[Exception] = []
    watched = Watched(None, PayloadLimits(), lambda _: 0, failing, faults.append)  # type: ignore[arg-type]
    watched.record_disk(1)
    assert [str(error) for error in faults] == ["injected"]
