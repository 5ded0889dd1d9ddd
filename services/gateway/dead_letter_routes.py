"""Routes of messages that could not be handled, for operators."""

from typing import Final

import msgspec

from services.gateway.job_routes import PageSize
from services.gateway.route import Requester, Route
from wms.bounds import Count, GivenName, GivenReason, Name, Reason, Total
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies


class LetterList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of letters, the newest first."""

    consumer: Name = ""
    """Only letters of this consumer; empty: of all."""
    replayed: bool = False
    """Whether to list those that were replayed, too."""
    before: Total | None = None
    """Only letters with smaller numbers: the next page, by `before` of the answer."""
    limit: PageSize = 100


class OneLetter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One letter."""

    letter: Total


class LettersToReplay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Letters that their consumers are to handle again."""

    letters: ordered.Letters
    reason: Reason = ""


class LettersToDrop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Letters to delete, and why."""

    letters: ordered.Letters
    reason: GivenReason


class MessageToSkip(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The next message of a consumer in a partition, which is to become a dead letter, and why."""

    consumer: GivenName
    topic: GivenName
    partition: Count
    offset: Total
    reason: GivenReason


def _list(sender: Requester, given: LetterList) -> asked.ListDeadLetters:
    return asked.ListDeadLetters(query_id=sender.id, client=sender.client, **msgspec.structs.asdict(given))


def _ordered(kind: type[msgspec.Struct], sender: Requester, body: msgspec.Struct) -> msgspec.Struct:
    return kind(command_id=CommandId(sender.id), client=sender.client, **msgspec.structs.asdict(body))


ROUTES: Final = (
    Route(
        method="GET",
        path="/dead-letters",
        summary="Messages that could not be handled (operators)",
        parameters=LetterList,
        message=_list,
        answer=replies.DeadLetters,
    ),
    Route(
        method="POST",
        path="/dead-letters/replay",
        summary="Have messages handled again (operators)",
        body=LettersToReplay,
        message=lambda sender, _, body: _ordered(ordered.ReplayDeadLetters, sender, body),
        answer=replies.Ruled,
    ),
    Route(
        method="POST",
        path="/dead-letters/drop",
        summary="Delete messages that could not be handled (operators)",
        body=LettersToDrop,
        message=lambda sender, _, body: _ordered(ordered.DropDeadLetters, sender, body),
        answer=replies.Ruled,
    ),
    Route(
        method="POST",
        path="/dead-letters/skip",
        summary="Have a consumer skip the message that it does not get past (operators)",
        body=MessageToSkip,
        message=lambda sender, _, body: _ordered(ordered.SkipMessage, sender, body),
        answer=replies.Ruled,
    ),
    Route(
        method="GET",
        path="/dead-letters/{letter}",
        summary="All that is kept of a message that could not be handled (operators)",
        parameters=OneLetter,
        message=lambda sender, given: asked.ShowDeadLetter(
            query_id=sender.id, client=sender.client, letter=given.letter
        ),
        answer=replies.DeadLetterDetail,
    ),
)
