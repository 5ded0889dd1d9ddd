"""Users and administrators of a VO whose groups order pilots of their own."""

from typing import Any

from services.pilot_submitter.provisioning import Provisioning
from tests.services.pilot_submitter.elements import STAYS, Site
from tests.services.world import user
from wms.auth.principal import Principal
from wms.auth.token import Verifier
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.ids import AttemptId, CommandId
from wms.messages import replies
from wms.messages.commands import SetShare, StartPilots
from wms.runtime import clock

ANN, BOB, EVE = user("ann"), user("bob"), user("eve", group="top")


ADMIN = user("ada", "job_administrator", group="bosses")


class Recording(LocalDispatcher):
    """Stands for a middleware: it takes orders, starts nothing, and keeps what each pilot was sent with."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.orders: list[PilotRequest] = []

    async def send(self, orders: Any) -> list[PilotSighting]:
        self.orders += orders
        return [PilotSighting(pilot_id=each.pilot_id, state="Submitted", reference="x") for each in orders]


class Grounds:
    """A site of a few slots, a pilot submitter that sends there, and the tokens of the pilots that it sent."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.world = site.world
        dispatcher = site.dispatcher(Recording, "first", STAYS)
        assert isinstance(dispatcher, Recording)
        self.dispatcher = dispatcher
        self.provisioning: Provisioning = site.build(first=dispatcher)[0]
        self._commands = 0

    async def advertise(self, slots: int = 4) -> None:
        await self.site.advertise("first")
        await self.world.sql(
            "update ad set element = jsonb_set(element, '{slots}', to_jsonb($1::int))", slots
        )

    async def order(self, who: Principal, **said: Any) -> Any:
        self._commands += 1
        (reply,) = await self.world.command(
            who, StartPilots(command_id=CommandId(f"start-{self._commands}"), **said)
        )
        return reply

    async def share(self, **said: Any) -> None:
        self._commands += 1
        setting = SetShare(
            command_id=CommandId(f"share-{self._commands}"), vo="lhcb", owner_group="physics", **said
        )
        (reply,) = await self.world.command(ADMIN, setting)
        assert isinstance(reply, replies.Ruled), reply
        await self.world.rules.refresh()

    async def sent(self) -> list[Principal]:
        """Plan once; return who the pilots are that were sent, as their tokens say."""
        self.dispatcher.orders.clear()
        self.provisioning._not_before = 0.0
        await self.provisioning.provide()
        verifier = Verifier.from_file(self.site.place / "keys" / "jwks.json")
        tokens = [each.token.split()[0] for each in self.dispatcher.orders]
        return [verifier.verify(each, clock.timestamp()) for each in tokens]

    async def matched(self, pilot: Principal, slots: int = 8) -> list[AttemptId]:
        return await self.world.match(pilot, slots)
