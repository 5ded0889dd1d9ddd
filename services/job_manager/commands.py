"""Handles `wms.job.commands`. Submissions of a batch are handled together, other commands one by one. Each user's commands keep their order."""

from functools import partial
from itertools import groupby

from services.job_manager import audit_trail, job_orders
from services.job_manager.admin_orders import AdminOrders
from services.job_manager.maintenance.canaries import Canaries
from services.job_manager.refusals import refuse
from services.job_manager.submission import parameter_lists
from services.job_manager.submission.accept import ReceivedSubmission, Submissions
from services.job_manager.submission.parse import valid_descriptions
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from wms.auth.principal import Principal
from wms.bus.delivery import Delivery, Steps
from wms.bus.time_slices import TimeSlices
from wms.db import share, wait_reason
from wms.db.database import Database, Transaction
from wms.errors import Rejected
from wms.messages.commands import AddChunks, Command, Control, Submit
from wms.parsing.parser_pool import ParserPool


class Commands:
    """Carries out users' commands: submissions, orders on jobs, and administrators' orders.

    `segments` are the CPU segments by which jobs are grouped into queues, as ascending upper bounds in seconds. Operators' orders to skip messages
    are for the Kafka cluster with the id `cluster_id`.
    """

    def __init__(
        self,
        segments: tuple[int, ...],
        foresight: SubmitCheck,
        admission: WaitingQuota,
        cluster_id: str = "",
    ) -> None:
        self._segments = segments
        self.submissions = Submissions(segments, foresight, admission)
        # A submission object of its own: the other's caches belong to the thread that prepares submissions.
        self.canaries = Canaries(Submissions(segments, SubmitCheck(segments), admission))
        self._admin_orders = AdminOrders(self.canaries, cluster_id)

    async def handle(self, tx: Transaction, batch: list[Delivery[Command]]) -> None:
        """Carry out a batch of commands in this transaction and send an answer to each. Refused commands change nothing."""
        for kind, group in groupby(batch, key=lambda each: type(each.message)):
            if kind is Submit:
                await self.submissions.take(tx, [each for d in group if (each := _submission(d)) is not None])
            else:
                for delivery in group:
                    if delivery.principal is not None:
                        await self._control(tx, delivery.principal, delivery.message)

    async def _control(self, tx: Transaction, principal: Principal, message: Command) -> None:
        assert not isinstance(message, Submit)
        if isinstance(message, AddChunks):
            await parameter_lists.keep(tx, principal, message)
        elif principal.kind not in ("user", "service"):
            fault = Rejected("NOT_ALLOWED", "only users and services give orders")
            await audit_trail.refused(tx, principal, message, fault)
            refuse(tx, principal.owner, message.command_id, message.client, fault)
        elif isinstance(message, Control):
            await job_orders.carry_out(tx, await share.acting(tx, principal), message, self._segments)
        else:
            acting = await share.acting(tx, principal)
            await self._admin_orders.carry_out(tx, acting, message)


class SubmissionPreparation:
    """Parses and checks submissions before their transaction begins: in a thread, or in a process if their descriptions are not small."""

    def __init__(self, commands: Commands, db: Database, slices: TimeSlices, parsers: ParserPool) -> None:
        self._submissions = commands.submissions
        self._db = db
        self._slices = slices
        self._parsers = parsers

    async def refresh(self) -> None:
        """Read again the computing elements against which submissions are checked, unless they were read within the last second."""
        foresight = self._submissions.foresight
        if foresight.is_due():
            async with self._db.transaction() as tx:
                known = await wait_reason.known(tx)
            await self._slices.call(partial(foresight.learn, known))

    def prepare(self, delivery: Delivery[Command]) -> Steps | None:
        """Return the steps that parse and check a submission. Return None for other messages, and for senders who may not submit.

        The steps raise NeedsProcess if one of its descriptions is not small.
        """
        submission = _submission(delivery)
        if submission is None or not submission.is_allowed:
            return None
        return self._submissions.prepare(
            submission.identity, submission.credentials, submission.command, only_small=True
        )

    async def prepare_parsed(self, delivery: Delivery[Command]) -> Steps:
        """Validate the descriptions of a submission in a parsing process, and return the steps that check the rest.

        Raise Rejected if they are invalid, or if the process took too much time or memory.
        """
        submission = _submission(delivery)
        assert submission is not None, "what is no submission has no documents"
        raws = map(bytes, submission.command.jobs)
        valid = await self._parsers.parse(submission.principal.owner, valid_descriptions, *raws)
        return self._submissions.prepare(
            submission.identity, submission.credentials, submission.command, valid
        )


def _submission(delivery: Delivery[Command]) -> ReceivedSubmission | None:
    principal, message = delivery.principal, delivery.message
    if principal is None or not isinstance(message, Submit):
        return None
    return ReceivedSubmission(principal, message, delivery.prepared)


async def on_refused(tx: Transaction, message: Command, fault: Rejected, claimed: str) -> None:
    """Answer a command whose token was refused. `claimed` is the owner in that unverified token; empty: no answer is sent."""
    if claimed:
        await audit_trail.unaccepted(tx, claimed, message, fault)
        refuse(tx, claimed, message.command_id, message.client, fault)
