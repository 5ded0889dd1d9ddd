"""A site that advertises nonsense harms itself alone."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target
from tests.waiting import eventually
from wms.client import JobDescription, select
from wms.messages import ads
from wms.messages.wire import encode
from wms.site import ComputingElement

SITE = "Mordor"


def advertisement(ce: str, **changes: object) -> ads.Advertise:
    """Return the ad of an element of the attacker's site."""
    plain: dict[str, Any] = {"site": SITE, "ce": ce, "slots": 10, "max_cpu_time": 86_400, "vos": ("local",)}
    # Nonsense is the purpose: a struct's own constructor checks no bounds.
    return ads.Advertise(element=ComputingElement(**plain | changes), advertised_at=datetime.now(UTC))


BEYOND_MEASURE: list[dict[str, object]] = [
    {"max_cpu_time": 2**70},
    {"slots": 2**63},
    {"memory_mb": 2**64},
    {"load": 1e308},
    {"max_jobs": 2**40, "current_jobs": 2**62},
    {"cores_per_pilot": 2**31},
]


async def test_numbers_beyond_all_measure_stop_no_service(target: Target, innocent: Innocent) -> None:
    async with innocent.beside():
        for n, changes in enumerate(BEYOND_MEASURE):
            ad = advertisement(f"ce-numbers-{n}", **changes)
            await target.send(ads.TOPIC, [ad], target.site_token(SITE))
        # Somebody waits whose reasons have to be judged against these elements.
        stuck = await innocent.client.submit(
            JobDescription(executable="/bin/true", sites=("Nowhere",), cpu_time=100)
        )
        job_id = stuck.ids[0][0]
        await eventually(lambda: _reason(innocent, job_id))
        await innocent.client.kill(select([job_id]))


async def _reason(innocent: Innocent, job_id: int) -> str:
    return (await innocent.client.show(job_id)).reason_text


async def test_an_ad_of_the_year_9999_does_not_lock_its_element_out(
    target: Target, innocent: Innocent
) -> None:
    token = target.site_token(SITE)
    late = msgspec.structs.replace(
        advertisement("ce-late"), advertised_at=datetime(9999, 12, 31, tzinfo=UTC) - timedelta(days=1)
    )
    async with innocent.beside():
        await target.send(ads.TOPIC, [late], token, partition=0)
        await target.send(ads.TOPIC, [advertisement("ce-late", slots=7)], token, partition=0)

        async def seen() -> bool:
            lines = await innocent.client.sites()
            return any((line.ce, line.ad.get("slots")) == ("ce-late", 7) for line in lines)

        await eventually(seen)


async def test_twelve_huge_ads_do_not_keep_others_from_the_list_of_sites(
    target: Target, innocent: Innocent
) -> None:
    token = target.site_token(SITE)
    tags = tuple(f"{n:03}-{'x' * 240}" for n in range(1_000))
    huge = [advertisement(f"ce-huge-{n}", tags=tags) for n in range(12)]
    assert len(encode(huge[0])) > 200_000
    async with innocent.beside():
        for each in huge:
            await target.send(ads.TOPIC, [each], token)
        lines = await innocent.client.sites()
        assert any(line.site == "local" for line in lines)


async def test_an_ad_of_a_stranger_starts_no_pilot_on_the_submitters_host(
    target: Target, innocent: Innocent
) -> None:
    async with innocent.beside():
        await target.send(
            ads.TOPIC, [advertisement("ce-local", dispatcher="local", slots=100)], target.site_token(SITE)
        )
        wanted = await innocent.client.submit(
            JobDescription(executable="/bin/true", sites=(SITE,), cpu_time=100)
        )
        job_id = wanted.ids[0][0]
        for _ in range(3):
            await innocent.run_one()
        pilots = await innocent.client.pilots(ended=True)
        assert not [each for each in pilots if each.site == SITE]
        await innocent.client.kill(select([job_id]))
