"""Routes by which operators list, show, replay, drop and skip dead letters: messages that a consumer could not handle."""

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
    """The parameters of a page of dead letters, the newest first."""

    consumer: Name = ""
    """Only dead letters of this consumer; empty: of all consumers."""
    replayed: bool = False
    """Whether to list also dead letters that were replayed already."""
    before: Total | None = None
    """Only dead letters with smaller numbers. For the next page give `before` of the previous answer."""
    limit: PageSize = 100


class OneLetter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameter in the path: the number of a dead letter."""

    letter: Total


class LettersToReplay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a replay: the numbers of dead letters that their consumers are to handle again, and the reason."""

    letters: ordered.Letters
    reason: Reason = ""


class LettersToDrop(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a deletion: the numbers of dead letters to delete, and the reason."""

    letters: ordered.Letters
    reason: GivenReason


class MessageToSkip(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a skip: the message at which a consumer is stuck in a partition, and the reason. The message becomes a dead letter."""

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
