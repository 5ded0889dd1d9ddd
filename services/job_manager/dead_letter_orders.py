"""Carries out operators' orders on dead letters, which are messages that could not be handled, and stores orders to skip a blocking message."""

from services.job_manager.queries.dead_letters import check_right, no_such_letter
from wms.auth.principal import Principal
from wms.bus.blocked_messages import MessagePosition, check_next
from wms.db import dead_letter, offset, operator_order, skip_order
from wms.db.database import Transaction
from wms.db.offset import ConsumedTopic
from wms.db.skip_order import SkipRequest
from wms.messages.commands import DropDeadLetters, ReplayDeadLetters, SkipMessage


async def replay(tx: Transaction, principal: Principal, order: ReplayDeadLetters) -> str:
    """Mark these dead letters so that their consumers handle them again. Return the new state in words.

    Raises:
        Rejected: NOT_ALLOWED; NO_SUCH_LETTER if one is missing or was replayed: then none is replayed.
    """
    check_right(principal)
    _check_all(order.letters, await dead_letter.lock(tx, order.letters, unreplayed=True))
    await dead_letter.ask_replay(tx, order.letters)
    subjects = [f"letter {each}" for each in sorted(set(order.letters))]
    await operator_order.record(tx, principal.owner, "replay", subjects, order.reason)
    return f"{len(subjects)} asked for; the list shows those that do not work again"


async def drop(tx: Transaction, principal: Principal, order: DropDeadLetters) -> str:
    """Delete these dead letters. Return the new state in words.

    Raises:
        Rejected: NOT_ALLOWED; NO_SUCH_LETTER if one is missing: then none is deleted.
    """
    check_right(principal)
    _check_all(order.letters, await dead_letter.lock(tx, order.letters, unreplayed=False))
    dropped = await dead_letter.drop(tx, order.letters)
    await operator_order.record(tx, principal.owner, "drop", list(dropped.values()), order.reason)
    return f"{len(dropped)} dropped"


def _check_all(named: tuple[int, ...], found: set[int]) -> None:
    """Raise Rejected if one of the named dead letters was not found.

    It is called before anything is changed, because the effects of a refused order are not rolled back.
    """
    if missing := sorted(set(named) - found):
        raise no_such_letter(*missing)


async def skip(tx: Transaction, principal: Principal, order: SkipMessage, cluster_id: str) -> str:
    """Store an order to skip the next message of a partition of this Kafka cluster; return the new state in words.

    `SkipOrders` carries it out later, since a handler has no access to Kafka.

    Raises:
        Rejected: NOT_ALLOWED, NO_SUCH_PARTITION, or NOT_NEXT if another message comes next.
    """
    check_right(principal)
    feed = ConsumedTopic(cluster_id, order.consumer, order.topic)
    blocked = MessagePosition(
        consumer=order.consumer, topic=order.topic, partition=order.partition, offset=order.offset
    )
    check_next(blocked, await offset.find(tx, feed, order.partition))
    wanted = SkipRequest(
        operator=principal.owner,
        feed=feed,
        partition=order.partition,
        offset=order.offset,
        reason=order.reason,
    )
    await skip_order.put(tx, wanted)
    return f"{order.consumer} is to skip {order.topic}/{order.partition}@{order.offset} within seconds"
