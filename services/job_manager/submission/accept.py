"""Accepts submissions, each completely or not at all. Those of one owner are stored together in few statements."""

import hashlib
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from operator import attrgetter, itemgetter
from typing import TypeVar, cast

import msgspec

from services.job_manager import audit_trail, dependencies
from services.job_manager.refusals import refuse
from services.job_manager.submission import brokered_jobs, parameter_lists, sandbox_claims
from services.job_manager.submission.parse import AT_A_GLANCE, DescriptionReader
from services.job_manager.submission.store import NewSubmission, PreparedSubmission, Ranges, hold, store
from services.job_manager.submission.submit_check import SubmitCheck, in_words
from services.job_manager.submission.waiting_limits import WaitingQuota
from wms.auth.policy import allowed
from wms.auth.principal import Principal
from wms.db import submission
from wms.db.database import Transaction
from wms.db.submission import ExecutedCommand
from wms.errors import Rejected
from wms.ids import CommandId, Identity
from wms.jobdesc.kind import JobKind, PartlyRead
from wms.jobdesc.predecessors import Predecessors, predecessors_of
from wms.matching import canary
from wms.matching.grouping import Requirements
from wms.matching.requirements import Credentials, requirements_of
from wms.messages import replies
from wms.messages.commands import Submit

_KIND = attrgetter("kind")


class ReceivedSubmission(msgspec.Struct, frozen=True):
    """A submission as received: its command, its sender, and the result of its preparation.

    `prepared` is a refusal if the preparation found a fault, and None if it was not prepared yet.
    """

    principal: Principal
    command: Submit
    prepared: PreparedSubmission | Rejected | None = None

    @property
    def identity(self) -> Identity:
        """Owner, group and VO of the jobs, from the sender's token."""
        return self.principal.identity

    @property
    def credentials(self) -> Credentials:
        """Certificate subject and VOMS attributes from the sender's token."""
        return Credentials(self.principal.certificate_subject, self.principal.fqans)

    @property
    def is_allowed(self) -> bool:
        """Whether the sender's rights allow to submit jobs. Nobody may submit as the owner of the test jobs (canaries)."""
        mine = self.principal.owner != canary.OWNER
        return mine and allowed(self.principal, "submit", *self.identity)


class Submissions:
    """Checks, stores and answers submissions. `segments` are the CPU segments by which jobs are grouped into task queues.

    `foresight` checks whether jobs can run anywhere, `admission` whether the limits on waiting jobs allow more.
    """

    def __init__(self, segments: tuple[int, ...], foresight: SubmitCheck, admission: WaitingQuota) -> None:
        self.foresight = foresight
        self._segments = segments
        self._admission = admission
        self._reader = DescriptionReader()

    async def take(self, tx: Transaction, submissions: Sequence[ReceivedSubmission]) -> None:
        """Store or refuse each submission in this transaction, and send the answer to its owner's inbox.

        A submission that is repeated with the same id gets its earlier answer.
        """
        if any(each.prepared is None for each in submissions):
            await self.foresight.look(tx)
        by_owner: dict[tuple[Identity, Credentials], list[ReceivedSubmission]] = {}
        for each in submissions:
            if each.is_allowed:
                by_owner.setdefault((each.identity, each.credentials), []).append(each)
            else:
                fault = Rejected("NOT_ALLOWED", "this token may not submit jobs", "ask for one that may")
                await audit_trail.refused(tx, each.principal, each.command, fault)
                refuse(tx, each.principal.owner, each.command.command_id, each.command.client, fault)
        for (identity, _), mine in sorted(by_owner.items(), key=itemgetter(0)):
            await self._take_from(tx, identity, mine)

    async def place(self, tx: Transaction, identity: Identity, submit: Submit) -> Ranges:
        """Store a submission of the system itself, and send no answer. Return the ranges of its job ids. Raise Rejected if it is invalid."""
        prepared = _found(done(self.prepare(identity, Credentials(), submit)))
        order = _order({}, submit, prepared)
        return (await store(tx, identity, [order]))[submit.command_id]

    def prepare(
        self,
        identity: Identity,
        credentials: Credentials,
        submit: Submit,
        valid: Sequence[bytes] | None = None,
        *,
        only_small: bool = False,
    ) -> Generator[None, None, PreparedSubmission | Rejected]:
        """Parse and check a submission without the database, in steps. The result is the prepared submission, or why it is refused.

        `valid` are its descriptions as `valid_descriptions` returned them; None: they are validated here. With `only_small`, raise NeedsProcess if
        one of them is new and not small.
        """
        try:
            return (
                yield from self._judge(
                    identity, credentials, submit, self._reader.read(submit, valid, only_small=only_small)
                )
            )
        except Rejected as fault:
            return fault

    async def _take_from(
        self, tx: Transaction, identity: Identity, submissions: Sequence[ReceivedSubmission]
    ) -> None:
        owner = identity.owner
        submits = [each.command for each in submissions]
        parts = await parameter_lists.find(tx, owner, submits)
        before = await submission.taken(tx, owner, [submit.command_id for submit in submits])
        orders: dict[CommandId, NewSubmission] = {}
        repeated: list[Submit] = []
        for each in submissions:
            submit = each.command
            known = _known(submit.command_id, orders, before)
            if known is not None and known == _digest(submit):
                repeated.append(submit)
                continue
            try:
                _check_unused(submit, known)
                prepared = _found(each.prepared or done(self.prepare(identity, each.credentials, submit)))
                order = _order(parts, submit, prepared)
                await dependencies.check(tx, each.principal, prepared.predecessors.values())
                if not submit.rehearsal:
                    await _check_archives(tx, identity, order)
            except Rejected as fault:
                refuse(tx, owner, submit.command_id, submit.client, fault)
                continue
            if submit.rehearsal:
                _answer(tx, owner, submit, (), prepared.foreseen)
            else:
                orders[submit.command_id] = order
                for part in [part for listed in submit.lists for part in listed.parts]:
                    del parts[part]
        sizes = {command_id: order.prepared.count for command_id, order in orders.items()}
        refused = await self._admission.refused(tx, identity, sizes)
        for submit in [each for each in submits if each.command_id in refused]:
            orders.pop(submit.command_id, None)
            refuse(tx, owner, submit.command_id, submit.client, refused[submit.command_id])
        ids = await store(tx, identity, list(orders.values())) if orders else {}
        await hold(tx, owner, orders, ids)
        await brokered_jobs.send(tx, orders, ids)
        for command_id, ranges in ids.items():
            _answer(tx, owner, orders[command_id].command, ranges, orders[command_id].prepared.foreseen)
        for submit in [each for each in repeated if each.command_id not in refused]:
            ranges = ids.get(submit.command_id) or _decoded(before[submit.command_id])
            _answer(tx, owner, submit, ranges, repeated=True)

    def _judge(
        self,
        identity: Identity,
        credentials: Credentials,
        submit: Submit,
        reading: Generator[None, None, list[PartlyRead]],
    ) -> Generator[None, None, PreparedSubmission]:
        jobs = yield from reading
        brokered_jobs.check(jobs)
        kinds = Counter(map(_KIND, jobs))
        required: dict[JobKind, Requirements] = {}
        for n, kind in enumerate(kinds):
            if n % AT_A_GLANCE == 0 or kind.description.requirements:
                yield
            required[kind] = requirements_of(
                kind.description, *identity, self._segments, credentials=credentials
            )
        wanted = Counter[Requirements]()
        for kind, descriptions in kinds.items():
            wanted[required[kind]] += descriptions * kind.jobs
        foreseen = yield from self.foresight.foresee(wanted)
        if foreseen and submit.strict:
            raise Rejected(
                "CANNOT_RUN",
                "some of the jobs could run nowhere",
                "change what they ask for, or submit them without --strict to let them wait",
                in_words(foreseen),
            )
        return PreparedSubmission(
            _digest(submit), jobs, required, wanted.total(), foreseen, _predecessors(kinds)
        )


R = TypeVar("R")


def done(steps: Generator[None, None, R]) -> R:
    """Run a generator of steps to its end and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return cast("R", stop.value)


def _found(prepared: PreparedSubmission | Rejected) -> PreparedSubmission:
    if isinstance(prepared, Rejected):
        raise prepared
    return prepared


def _order(parts: parameter_lists.Parts, submit: Submit, prepared: PreparedSubmission) -> NewSubmission:
    return NewSubmission(submit, prepared, _kept(parts, submit, prepared.jobs))


def _kept(
    parts: parameter_lists.Parts, submit: Submit, jobs: Sequence[PartlyRead]
) -> dict[int, tuple[parameter_lists.KeptPart, ...]]:
    places = [each.job for each in submit.lists]
    if len(set(places)) < len(places) or any(not 0 <= place < len(jobs) for place in places):
        raise Rejected(
            "LISTS_MISSING", "its lists are for no description or twice for one", "submit it again"
        )
    return {
        each.job: parameter_lists.joined(parts, each, jobs[each.job].kind.description)
        for each in submit.lists
    }


async def _check_archives(tx: Transaction, identity: Identity, order: NewSubmission) -> None:
    """Raise Rejected if a submission refers to archives that its owner has not sent."""
    for place, parts in order.kept.items():
        for name in order.prepared.jobs[place].kind.description.input_parameters:
            if any(name in part.unclaimed for part in parts):
                raise sandbox_claims.not_sent(f"an archive of the parameter {name}")
    descriptions = (kind.description for kind in order.prepared.required)
    digests = sandbox_claims.referred(descriptions)
    await sandbox_claims.check(tx, identity, order.command.client, digests)


def _known(
    command_id: CommandId, orders: dict[CommandId, NewSubmission], before: dict[CommandId, ExecutedCommand]
) -> bytes | None:
    """Return the digest of the earlier submission with this command id; None if there is none.

    `orders` are those of this batch, `before` those of earlier transactions.
    """
    if command_id in orders:
        return orders[command_id].prepared.digest
    return before[command_id].digest if command_id in before else None


def _check_unused(submit: Submit, known: bytes | None) -> None:
    if known is not None:
        raise Rejected(
            "ID_REUSED",
            f"the id {submit.command_id} was used before for another submission",
            "choose another id",
        )


def _digest(submit: Submit) -> bytes:
    digest = hashlib.sha256(b"".join([each for raw in submit.jobs for each in (raw, b"\n")]))
    for each in submit.lists:
        digest.update(repr((each.job, each.parts)).encode())
    if submit.hold:
        digest.update(b"hold")
    return digest.digest()


def _predecessors(kinds: Iterable[JobKind]) -> dict[JobKind, Predecessors]:
    found = {kind: predecessors_of(kind.description) for kind in kinds}
    return {kind: each for kind, each in found.items() if each is not None}


def _decoded(taken: ExecutedCommand) -> Ranges:
    return msgspec.json.decode(taken.answer, type=Ranges)


def _answer(
    tx: Transaction,
    owner: str,
    submit: Submit,
    ids: Ranges,
    foreseen: tuple[replies.Foreseen, ...] = (),
    *,
    repeated: bool = False,
) -> None:
    answer = replies.Submitted(
        command_id=submit.command_id,
        client=submit.client,
        ids=ids,
        repeated=repeated,
        warnings=in_words(foreseen),
        foreseen=foreseen,
    )
    tx.send(*replies.address(owner, submit.client), answer)
