"""`wms.job.commands`: what users ask to be done. Key: the owner, so that one user's commands keep their order.

Parts of long lists, which come in any order before what names them, have the command's id for a key.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import (
    RULE,
    Client,
    Count,
    GivenName,
    JobNumber,
    JobRange,
    Moment,
    Name,
    Reason,
    ShareOfGroup,
)
from wms.ids import CommandId
from wms.job.state import State
from wms.messages.limits import Key, Kind, Limit

TOPIC = "wms.job.commands"

SUBMIT_LIMIT = 2_000
"""Descriptions in one Submit; a tool splits more over several, with a command id each."""

CHUNKS_LIMIT = 1_000
"""In one AddChunks; the size of a message keeps them to a third of it anyway."""

LISTS_LIMIT = 20
"""Of one description."""
PARTS_LIMIT = 100_000
"""Of the lists of one description."""

RawLists: TypeAlias = Annotated[dict[Name, msgspec.Raw], msgspec.Meta(max_length=LISTS_LIMIT)]
CHANGES_LIMIT = 64
Changes: TypeAlias = Annotated[dict[Name, msgspec.Raw], msgspec.Meta(max_length=CHANGES_LIMIT)]
"""Fields of a job description with their new values, as JSON; read as those of a submission are."""


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs are meant: those for which every named part holds. A selector that names nothing selects nothing."""

    ids: Annotated[tuple[JobRange, ...], msgspec.Meta(max_length=1_000)] = ()
    """Ranges of job ids, both ends included."""
    owner: Name | None = None
    states: Annotated[tuple[State, ...], msgspec.Meta(max_length=32)] = ()
    site: Name | None = None
    name: Name | None = None
    """A pattern with `*` and `?`."""
    job_group: Name | None = None
    submission: Name | None = None
    """Jobs of the asker's submission with this id; with `owner`, of that owner's."""
    changed_since: Moment | None = None
    """Jobs that were submitted or changed their state since then."""
    everything: bool = False
    """Every job that the asker may act on; must be said, never a default."""


class AddChunks(msgspec.Struct, frozen=True, kw_only=True, tag="add-chunks"):
    """Keep a part of long lists of parameters, for a Submit that names this command: lists too long for one message."""

    command_id: CommandId
    chunks: Annotated[tuple[RawLists, ...], msgspec.Meta(max_length=CHUNKS_LIMIT)]
    """By name, the values of the jobs that follow those of the part before, each list as JSON: of a thousand jobs a chunk, of fewer
    only in the last of all parts. Raw, so that what is wrong with values can be answered with its place."""
    client: Client = ""


class LongLists(msgspec.Struct, frozen=True):
    """Where the lists of one description of a Submit are, which itself has none and says `array`."""

    job: Count
    """Its place among the descriptions."""
    parts: Annotated[tuple[CommandId, ...], msgspec.Meta(max_length=PARTS_LIMIT)]
    """The AddChunks commands, in order."""


def of_one_each(lists: tuple[LongLists, ...]) -> str:
    """Return what is wrong with the lists of several descriptions: each has its own, and each part belongs to one."""
    jobs = [each.job for each in lists]
    if len(set(jobs)) < len(jobs):
        return "names one description twice"
    parts = [part for each in lists for part in each.parts]
    return "names one part twice" if len(set(parts)) < len(parts) else ""


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag="submit"):
    """Take these jobs. All of them are taken or none; the same id with the same body is taken once."""

    command_id: CommandId
    jobs: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=SUBMIT_LIMIT)]
    """Job descriptions as JSON objects; read one by one, so that every error of every one can be named."""
    client: Client = ""
    """Which of the user's tools waits for the reply."""
    lists: Annotated[
        tuple[LongLists, ...], msgspec.Meta(max_length=SUBMIT_LIMIT, extra={RULE: of_one_each})
    ] = ()
    strict: bool = False
    """Refuse all of it if some job could run nowhere now."""
    rehearsal: bool = False
    """Answer as if, and store nothing: an answer without ids says that it would be taken."""
    hold: bool = False
    """The jobs are Held from the beginning, until they are released."""


class Control(msgspec.Struct, frozen=True, kw_only=True, tag="control"):
    """Do this to the selected jobs; those for whose state it is illegal are left as they are and named."""

    command_id: CommandId
    action: Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
    """`stop_and_hold` holds those too that a pilot has: they are stopped, and begin anew once they are released. `edit` changes what jobs ask for that
    wait or are held."""
    selector: Selector
    reason: Reason = ""
    changes: Changes = {}
    """Of `edit` and `reschedule`: what the jobs ask for from now on."""
    client: Client = ""


class SetShare(msgspec.Struct, frozen=True, kw_only=True, tag="set-share"):
    """A group's share is this from now on, whatever the file says; what is not said stays as it is."""

    command_id: CommandId
    vo: GivenName
    owner_group: GivenName
    job_share: ShareOfGroup | None = None
    job_sharing: bool | None = None
    background: bool | None = None
    private_pilots: bool | None = None
    client: Client = ""


class ResetShare(msgspec.Struct, frozen=True, kw_only=True, tag="reset-share"):
    """A group's share is again what the file says, or the default."""

    command_id: CommandId
    vo: GivenName
    owner_group: GivenName
    client: Client = ""


class SetLimit(msgspec.Struct, frozen=True, kw_only=True, tag="set-limit"):
    """This limit holds from now on, in place of any of its kind for the same, whatever the file says."""

    command_id: CommandId
    limit: Limit
    client: Client = ""


class DropLimit(msgspec.Struct, frozen=True, kw_only=True, tag="drop-limit"):
    """No such limit holds from now on, whatever the file says; with `reset`, what the file says of it."""

    command_id: CommandId
    kind: Kind
    key: Key
    reset: bool = False
    client: Client = ""


class RuleSite(msgspec.Struct, frozen=True, kw_only=True, tag="rule-site"):
    """What operators want of a site, or of one element of it, from now on.

    `ban`, `drain`: no pilots and no work go there, and what runs goes on to its end; of a ban, pilots that have not begun are
    called back. `unban`: it is as any other again. `test`: a canary tries it now. `forget`: what it advertised is gone, until it
    advertises itself again.
    """

    command_id: CommandId
    action: Literal["ban", "unban", "drain", "test", "forget"]
    site: GivenName
    ce: Name = ""
    """Empty: the site with all its elements."""
    reason: Reason = ""
    client: Client = ""


ORDERED_AT_ONCE = 100
"""Pilots in one order."""


class StartPilots(msgspec.Struct, frozen=True, kw_only=True, tag="start-pilots"):
    """Send private pilots, which take the jobs of the asker alone, or of the asker's group if it shares its jobs.

    `group_wide`: they are the group's from the beginning, which must share its jobs. What was not sent after `within_seconds`
    is sent no more.
    """

    command_id: CommandId
    count: Annotated[int, msgspec.Meta(ge=1, le=ORDERED_AT_ONCE)] = 1
    site: Name = ""
    ce: Name = ""
    """Empty: wherever there is room."""
    group_wide: bool = False
    within_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 3_600.0
    client: Client = ""


class StopPilots(msgspec.Struct, frozen=True, kw_only=True, tag="stop-pilots"):
    """Send no more pilots for these orders, or with none named for any of the asker's."""

    command_id: CommandId
    orders: Annotated[tuple[JobNumber, ...], msgspec.Meta(max_length=100)] = ()
    client: Client = ""


Rule = SetShare | ResetShare | SetLimit | DropLimit | RuleSite | StartPilots | StopPilots
Command = Submit | AddChunks | Control | Rule
