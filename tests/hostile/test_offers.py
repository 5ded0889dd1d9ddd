"""Jobs that are hard to hand out keep nobody else's from being handed out."""

import msgspec
import pytest

from tests.hostile.innocent import PATIENCE_SECONDS, Innocent
from tests.hostile.target import Target
from wms.client import Client, JobDescription, Rejected, select


@pytest.mark.parametrize("array", [None, 1_000])
async def test_a_job_too_large_to_be_offered_is_refused_and_the_largest_is_offered_alone(
    target: Target, innocent: Innocent, array: int | None
) -> None:
    size = 949_000
    arguments = ("x" * 30_000,) * (size // 30_000)
    job = JobDescription(executable="/bin/true", arguments=arguments, array=array)
    async with Client.connect(target.settings("bulky")) as client, innocent.beside():
        with pytest.raises(Rejected, match="DESCRIPTION_INVALID"):
            await client.submit(job)
        # The largest that is accepted is offered, alone, and run.
        job = msgspec.structs.replace(job, arguments=arguments[:4])
        taken = await client.submit(job)
        if array is None:
            assert await client.wait(taken.selector(), timeout=PATIENCE_SECONDS) == {"Done": 1}
        await client.kill(select(everything=True))
