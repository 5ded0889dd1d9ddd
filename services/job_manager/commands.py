"""Handles `wms.job.commands`: submissions together, orders one by one, each user's in the order they came."""

from itertools import groupby

from services.job_manager import control, lists, rules
from services.job_manager.admission import Admission
from services.job_manager.answers import refuse
from services.job_manager.canaries import Canaries
from services.job_manager.foresight import Foresight
from services.job_manager.submissions import Submissions
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.db.database import Transaction
from wms.errors import Rejected
from wms.messages.commands import AddChunks, AddValues, Command, Control, Submit


class Commands:
    """Handles batches of commands."""

    def __init__(self, segments: tuple[int, ...], foresight: Foresight, admission: Admission) -> None:
        self.submissions = Submissions(segments, foresight, admission)
        self.canaries = Canaries(self.submissions)

    async def handle(self, tx: Transaction, batch: list[Delivery[Command]]) -> None:
        """Carry out what users ask."""
        sent = [(each.principal, each.message) for each in batch if each.principal is not None]
        for kind, group in groupby(sent, key=lambda each: type(each[1])):
            if kind is Submit:
                await self.submissions.take(tx, [(p, m) for p, m in group if isinstance(m, Submit)])
            else:
                for principal, message in group:
                    await self._control(tx, principal, message)

    async def _control(self, tx: Transaction, principal: Principal, message: Command) -> None:
        assert not isinstance(message, Submit)
        if isinstance(message, AddChunks | AddValues):
            await lists.keep(tx, principal, message)
        elif principal.kind not in ("user", "service"):
            fault = Rejected("NOT_ALLOWED", "only users and services give orders")
            refuse(tx, principal.owner, message.command_id, message.client, fault)
        elif isinstance(message, Control):
            await control.carry_out(tx, principal, message)
        else:
            await rules.carry_out(tx, principal, message, self.canaries)


async def on_refused(tx: Transaction, message: Command, fault: Rejected, claimed: str) -> None:
    """Say to whom the token claims to be that it was not believed."""
    if claimed:
        refuse(tx, claimed, message.command_id, message.client, fault)
