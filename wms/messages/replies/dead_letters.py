"""Answers about messages that could not be handled."""

from datetime import datetime
from typing import Annotated

import msgspec

from wms.bounds import Bytes, Client, Count, LongText, MessageId, StoredName, Total, Word
from wms.messages.replies.bounds import Many


class DeadLetterLine(msgspec.Struct, frozen=True, kw_only=True):
    """A message that could not be handled, and why."""

    number: Total
    consumer: StoredName
    topic: StoredName
    partition: Count
    offset: Total
    arrived_at: datetime
    size: Bytes
    """The size in bytes of what is kept of the message."""
    type: Word
    """The kind of message that its beginning names, or `-`."""
    sender: StoredName
    """The verified owner; empty if the sender could not be verified."""
    error: LongText
    state: Word
    """`dead`, `asked` for a replay, or `replayed`."""


class LetterSender(msgspec.Struct, frozen=True, kw_only=True):
    """The verified sender of a message, as the token said."""

    kind: Word
    owner: StoredName
    owner_group: StoredName
    vo: StoredName
    token_id: StoredName = ""


class DeadLetters(msgspec.Struct, frozen=True, kw_only=True, tag="dead-letters"):
    """Answers ListDeadLetters: a page, the newest first."""

    query_id: MessageId
    client: Client
    letters: Annotated[tuple[DeadLetterLine, ...], Many]
    before: Total | None = None
    """Where the next page begins; None: there is none."""


class DeadLetterDetail(msgspec.Struct, frozen=True, kw_only=True, tag="dead-letter"):
    """Answers ShowDeadLetter: all that is kept of the message."""

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
    """Whether only the beginning of the payload is here."""
