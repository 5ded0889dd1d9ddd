"""Ten thousand offers of one VO: each is answered, its quota holds, and the others still get in."""

import time

from tests.services.agreement.offered import R, terms
from tests.services.agreement.site import Site, reserve
from tests.services.world import World, user
from wms.agreement.calendar import SlotCalendar
from wms.agreement.decision import ReservationRules
from wms.agreement.quota import VoQuota
from wms.agreement.state import GRANTED

OFFERS = 10_000


async def test_ten_thousand_offers_are_answered_within_the_quota(the_world: World) -> None:
    rules = ReservationRules(quotas={"*": VoQuota(agreements=200, owner_agreements=200)})
    site = Site(the_world, cpus=64, rules=rules)
    (job,) = await the_world.submitted()
    reply = await the_world.submit(who=user("bob", vo="atlas"))
    began = time.monotonic()
    for n in range(0, OFFERS, 1_000):
        await site.send(*(reserve(terms(job, f"a-{m}", cpus=1 + m % 8)) for m in range(n, n + 1_000)))
    await site.send(reserve(terms(reply.ids[0][0], "late", owner="bob", vo="atlas")))
    await site.decide()
    seconds = time.monotonic() - began
    codes = list(site.why().values())
    assert (codes.count(R.GRANTED), codes.count(R.QUOTA), len(codes)) == (201, OFFERS - 200, OFFERS + 1)
    found = await site.all()
    bookings = [
        each.booking(each.changed_at, rules.template.horizon)
        for each in found.values()
        if each.state in GRANTED
    ]
    assert SlotCalendar(0, bookings).most_used() <= 64
    assert seconds < 60
