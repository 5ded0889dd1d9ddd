"""Answers about dead letters: messages that could not be handled."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Bytes, Client, Count, LongText, MessageId, StoredName, Total, Word
from wms.messages.replies.bounds import Many


class DeadLetterLine(msgspec.Struct, frozen=True, kw_only=True):
    """One dead letter as an entry of a list: a message that could not be handled, and the error."""

    number: Total
    consumer: StoredName
    topic: StoredName
    partition: Count
    offset: Total
    arrived_at: datetime
    size: Bytes
    """The size in bytes of the stored part of the message."""
    type: Word
    """The message type that the beginning of the payload names; `-` if it names none."""
    sender: StoredName
    """The owner in the sender's verified token; empty if the sender could not be verified."""
    error: LongText
    state: Word
    """`dead`, `asked` (a replay was ordered) or `replayed`."""


class LetterSender(msgspec.Struct, frozen=True, kw_only=True):
    """The verified sender of a message, with the identity in the token."""

    kind: Word
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    token_id: StoredName = ""


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True, tag="dead-letters"):
    """Answers ListDeadLetters: a page of dead letters, the newest first."""

    query_id: MessageId
    client: Client
    letters: Annotated[tuple[DeadLetterLine, ...], Many]
    before: Total | None = None
    """The `before` of the query for the next page. None on the last page."""


class DeadLetterDetail(msgspec.Struct, frozen=True, kw_only=True, tag="dead-letter"):
    """Answers ShowDeadLetter: everything that is stored of a message that could not be handled."""

    query_id: MessageId
    client: Client
    letter: DeadLetterLine
    cluster_id: StoredName
    key: LongText
    sender: LetterSender | None
    """The verified sender; None if the sender could not be verified."""
    payload: LongText
    """The message as text; bytes that are no text are written as `\\xNN`."""
    is_cut: bool = False
    """Whether `payload` has only the beginning of the message."""
