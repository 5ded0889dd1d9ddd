"""What ends by itself, what is released, and what a comparison with the batch system finds."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from services.agreement.config import SiteScript
from services.agreement.site_script import ScriptedElement
from tests.services.agreement.offered import R, later, terms
from tests.services.agreement.site import Site, reserve
from tests.services.agreement.site_program import SiteProgram
from tests.services.world import World
from wms.agreement.calendar import Booking, OwnerBound
from wms.agreement.decision import ReservationRules
from wms.agreement.state import AgreementState
from wms.errors import Unavailable
from wms.ids import AgreementId

S = AgreementState
A1 = AgreementId("a-1")


@pytest.fixture
def program(tmp_path: Path) -> SiteProgram:
    return SiteProgram(tmp_path, cpus=4)


@pytest.fixture
async def site(the_world: World, program: SiteProgram) -> Site:
    element = ScriptedElement(SiteScript(program=str(program.path), seconds=60.0), ReservationRules(), 4)
    site = Site(the_world, maker=element, helper=element)
    (job,) = await the_world.submitted()
    await site.reserve(terms(job))
    return site


async def test_an_unconfirmed_one_expires_and_is_released(
    the_world: World, site: Site, program: SiteProgram
) -> None:
    await later(the_world, 61)
    await site.upkeep.end()
    assert program.held()
    await site.reconciliation.release()
    assert not program.held()
    assert [(each.state, each.is_held) for each in (await site.all()).values()] == [(S.EXPIRED, False)]


async def test_a_no_show_is_released(the_world: World, site: Site, program: SiteProgram) -> None:
    await site.confirm("a-1")
    await later(the_world, 150)
    await site.upkeep.end()
    assert site.told() == {}
    await later(the_world, 151)
    await site.upkeep.end()
    assert site.why() == {"a-1": R.NOT_USED}
    await site.reconciliation.release()
    assert not program.held()


async def test_what_cannot_be_released_yet_is_tried_again(
    the_world: World, site: Site, program: SiteProgram
) -> None:
    await site.cancel("a-1")
    program.is_silent = True
    with pytest.raises(Unavailable):
        await site.reconciliation.release()
    assert (await site.all())[A1].is_held
    program.is_silent = False
    await site.reconciliation.release()
    assert not (await site.all())[A1].is_held


async def test_a_reservation_without_an_agreement_is_removed(
    the_world: World, site: Site, program: SiteProgram
) -> None:
    await site.reconciliation.compare()
    assert program.held()
    await the_world.sql("delete from agreement")
    await site.reconciliation.compare()
    assert not program.held()
    assert site.upkeep.strays == 1


@pytest.mark.parametrize(("confirmed", "state"), [(False, S.CANCELLED), (True, S.ENDED)])
async def test_one_that_vanished_twice_is_over(
    site: Site, program: SiteProgram, *, confirmed: bool, state: AgreementState
) -> None:
    if confirmed:
        await site.confirm("a-1")
    program.remove("wms-a-1")
    await site.reconciliation.compare()
    assert site.told() == {}
    await site.reconciliation.compare()
    assert [(each.state, each.code) for each in site.decisions()] == [(state, R.VANISHED)]


async def test_old_ones_are_forgotten(the_world: World, site: Site) -> None:
    await site.cancel("a-1")
    await site.reconciliation.release()
    await later(the_world, 31 * 86_400)
    await site.upkeep.forget()
    assert await site.all() == {}


class FakeFrozen(ScriptedElement):
    """Stands for a batch system that does not answer in time."""

    async def look(self, _booked: Sequence[Booking], _owners: OwnerBound | None = None, /) -> "FakeFrozen":
        raise Unavailable("scontrol: no answer within 15 s")


async def test_no_offers_are_sent_to_an_element_whose_batch_system_does_not_answer(
    the_world: World, site: Site, program: SiteProgram
) -> None:
    asked = "select told_until > now() as asked from agreement_element"
    await site.upkeep.tell()
    assert [row["asked"] for row in await the_world.sql(asked)] == [True]
    frozen = FakeFrozen(SiteScript(program=str(program.path)), ReservationRules(), 4)
    site = Site(the_world, maker=frozen, helper=frozen)
    (job,) = await the_world.submitted()
    await site.send(reserve(terms(job, "a-2")))
    with pytest.raises(Unavailable):
        await site.deciding.round()
    assert [row["asked"] for row in await the_world.sql(asked)] == [False]
    await site.upkeep.tell()
    assert [row["asked"] for row in await the_world.sql(asked)] == [False]
