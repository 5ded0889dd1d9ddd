"""Answers to commands: taken, refused, carried out."""

from typing import Annotated

import msgspec

from wms.bounds import Client, JobNumber, JobRange, LongText, MessageId, Total, Word
from wms.ids import CommandId
from wms.messages.replies.bounds import Counts, Lines, Many
from wms.messages.replies.explanations import Foreseen


class Submitted(msgspec.Struct, frozen=True, kw_only=True, tag="submitted"):
    """The jobs are taken and durable; their ids are these ranges, in the order of the descriptions."""

    command_id: CommandId
    client: Client
    ids: Annotated[tuple[JobRange, ...], Many]
    repeated: bool = False
    """This command had been taken before; nothing new was submitted."""
    warnings: Lines = ()
    """What the user ought to know of the jobs, in words."""
    foreseen: Annotated[tuple[Foreseen, ...], Many] = ()
    """What keeps some of them from running anywhere; at most ten."""


class ValuesKept(msgspec.Struct, frozen=True, kw_only=True, tag="values-kept"):
    """The values are kept for the Submit that names them."""

    command_id: CommandId
    client: Client


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The command or query was refused whole, and changed nothing."""

    reply_to: MessageId
    """The command's or query's id."""
    client: Client
    code: Word
    message: LongText
    remedy: LongText = ""
    details: Lines = ()


class Unchanged(msgspec.Struct, frozen=True):
    """A job that a Control left as it was."""

    job_id: JobNumber
    why: LongText


class Controlled(msgspec.Struct, frozen=True, kw_only=True, tag="controlled"):
    """What a Control did."""

    command_id: CommandId
    client: Client
    changed: Total
    unchanged: Annotated[tuple[Unchanged, ...], Many] = ()
    """At most a hundred of them."""
    unchanged_total: Total = 0
    unchanged_by_state: Counts = {}
    """How many of them are in each state; ids of no job are in none."""
    repeated: bool = False


class Ruled(msgspec.Struct, frozen=True, kw_only=True, tag="ruled"):
    """A rule holds from now on; matchers apply it within seconds."""

    command_id: CommandId
    client: Client
    said: LongText
    """What holds, in words."""
    repeated: bool = False
    jobs: Annotated[tuple[JobNumber, ...], Many] = ()
    """Of a test, the canaries that are out."""
