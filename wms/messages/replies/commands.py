"""Answers to users' commands: accepted, refused or carried out."""

from typing import Annotated

import msgspec

from wms.bounds import Client, JobNumber, JobRange, LongText, MessageId, Total, Word
from wms.ids import CommandId
from wms.messages.replies.bounds import Counts, Lines, Many
from wms.messages.replies.explanations import Foreseen


class Submitted(msgspec.Struct, frozen=True, kw_only=True, tag="submitted"):
    """Answers Submit: the jobs are accepted and stored. `ids` are ranges, in the order of the job descriptions."""

    command_id: CommandId
    client: Client
    ids: Annotated[tuple[JobRange, ...], Many]
    repeated: bool = False
    """Whether this command had been accepted before. Then nothing new was submitted."""
    warnings: Lines = ()
    """What the user should know about these jobs, in words."""
    foreseen: Annotated[tuple[Foreseen, ...], Many] = ()
    """Why some of the jobs can run nowhere at present; at most ten entries."""


class ValuesKept(msgspec.Struct, frozen=True, kw_only=True, tag="values-kept"):
    """Answers AddChunks: the parameter lists are stored until a Submit names them."""

    command_id: CommandId
    client: Client


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The command or query was refused whole and changed nothing. `code` is for programs, `message` and `remedy` for people."""

    reply_to: MessageId
    """The id of the refused command or query."""
    client: Client
    code: Word
    message: LongText
    remedy: LongText = ""
    details: Lines = ()


class Unchanged(msgspec.Struct, frozen=True):
    """A job that an action (Control) did not change, and why."""

    job_id: JobNumber
    why: LongText


class Controlled(msgspec.Struct, frozen=True, kw_only=True, tag="controlled"):
    """Answers Control: how many jobs the action changed, and which ones it did not."""

    command_id: CommandId
    client: Client
    changed: Total
    unchanged: Annotated[tuple[Unchanged, ...], Many] = ()
    """Jobs that stayed as they were; at most a hundred of them."""
    unchanged_total: Total = 0
    unchanged_by_state: Counts = {}
    """How many of the unchanged jobs are in each state. Ids that belong to no job are not counted."""
    repeated: bool = False


class Ruled(msgspec.Struct, frozen=True, kw_only=True, tag="ruled"):
    """Answers commands about shares, limits, sites and pilots: the new rule is stored. Matchers apply it within seconds."""

    command_id: CommandId
    client: Client
    said: LongText
    """What applies from now on, in words for people."""
    repeated: bool = False
    jobs: Annotated[tuple[JobNumber, ...], Many] = ()
    """The ids of the test jobs (canaries) that are running or waiting, if the command asked for a test."""
