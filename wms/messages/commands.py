"""`wms.job.commands`: commands of users. Key: the owner, so that one user's commands keep their order.

Parts of long lists have the command's id as their key. They may arrive in any order before the Submit that names them.
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
"""The most descriptions in one Submit; a tool splits more over several, with a command id each."""

CHUNKS_LIMIT = 1_000
"""The most chunks in one AddChunks; the size limit of a message keeps them to a third of it anyway."""

LISTS_LIMIT = 20
"""The most lists in one description."""
PARTS_LIMIT = 100_000
"""The most parts of the lists of one description."""

RawLists: TypeAlias = Annotated[dict[Name, msgspec.Raw], msgspec.Meta(max_length=LISTS_LIMIT)]
CHANGES_LIMIT = 64
Changes: TypeAlias = Annotated[dict[Name, msgspec.Raw], msgspec.Meta(max_length=CHANGES_LIMIT)]
"""Fields of a job description with their new values, as JSON; parsed like the fields of a submission."""


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """The selection of jobs that meet all of the given conditions. A selector without conditions selects no job."""

    ids: Annotated[tuple[JobRange, ...], msgspec.Meta(max_length=1_000)] = ()
    """Ranges of job ids, both ends included."""
    owner: Name | None = None
    states: Annotated[tuple[State, ...], msgspec.Meta(max_length=32)] = ()
    site: Name | None = None
    name: Name | None = None
    """A pattern with `*` and `?`."""
    job_group: Name | None = None
    submission: Name | None = None
    """The id of a submission of the sender, or of `owner` if given; selects its jobs."""
    changed_since: Moment | None = None
    """The time since which a job must have been submitted or have changed its state."""
    everything: bool = False
    """Whether to select every job that the sender may act on; never a default."""


class AddChunks(msgspec.Struct, frozen=True, kw_only=True, tag="add-chunks"):
    """A part of parameter lists too long for one message, stored for a Submit that names this command."""

    command_id: CommandId
    chunks: Annotated[tuple[RawLists, ...], msgspec.Meta(max_length=CHUNKS_LIMIT)]
    """Lists by name, each as JSON, with the values of the jobs that follow those of the previous part. A chunk has the values of a
    thousand jobs; only in the last part may it have fewer. Raw, so that an error in a value can be reported with its place."""
    client: Client = ""


class LongLists(msgspec.Struct, frozen=True):
    """The commands that carry the parameter lists of one description of a Submit; the description itself has `array` and no lists."""

    job: Count
    """The position of the description in the Submit, from 0."""
    parts: Annotated[tuple[CommandId, ...], msgspec.Meta(max_length=PARTS_LIMIT)]
    """The ids of the AddChunks commands, in order."""


def of_one_each(lists: tuple[LongLists, ...]) -> str:
    """Return the fault of a Submit's lists, empty if there is none: descriptions and parts must each be named once."""
    jobs = [each.job for each in lists]
    if len(set(jobs)) < len(jobs):
        return "names one description twice"
    parts = [part for each in lists for part in each.parts]
    return "names one part twice" if len(set(parts)) < len(parts) else ""


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag="submit"):
    """A request to accept jobs, all or none; a command id takes effect once."""

    command_id: CommandId
    jobs: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=SUBMIT_LIMIT)]
    """Job descriptions as JSON objects; parsed one by one, so that every error of every description can be reported."""
    client: Client = ""
    """The id of the user's tool that waits for the reply."""
    lists: Annotated[
        tuple[LongLists, ...], msgspec.Meta(max_length=SUBMIT_LIMIT, extra={RULE: of_one_each})
    ] = ()
    strict: bool = False
    """Whether to refuse all jobs if some job could run nowhere now."""
    rehearsal: bool = False
    """Whether to check the jobs without storing them. A reply without ids means that they would be accepted."""
    hold: bool = False
    """Whether the jobs are Held from the beginning, until they are released."""


class Control(msgspec.Struct, frozen=True, kw_only=True, tag="control"):
    """An action on the selected jobs. Jobs whose state forbids it are left as they are and are listed in the reply."""

    command_id: CommandId
    action: Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
    """`stop_and_hold` also holds jobs that a pilot has: they are stopped, and begin anew once they are released. `edit` changes the
    requirements of jobs that wait or are held.
    """
    selector: Selector
    reason: Reason = ""
    changes: Changes = {}
    """For `edit` and `reschedule`: the new values of fields in the jobs' descriptions."""
    client: Client = ""


class SetShare(msgspec.Struct, frozen=True, kw_only=True, tag="set-share"):
    """New values of a group's share, which override the configuration file; absent values stay as they are."""

    command_id: CommandId
    vo: GivenName
    owner_group: GivenName
    job_share: ShareOfGroup | None = None
    job_sharing: bool | None = None
    background: bool | None = None
    private_pilots: bool | None = None
    client: Client = ""


class ResetShare(msgspec.Struct, frozen=True, kw_only=True, tag="reset-share"):
    """The return of a group's share to the configuration file, or to the default."""

    command_id: CommandId
    vo: GivenName
    owner_group: GivenName
    client: Client = ""


class SetLimit(msgspec.Struct, frozen=True, kw_only=True, tag="set-limit"):
    """A new limit, which replaces any of its kind with the same key and overrides the configuration file."""

    command_id: CommandId
    limit: Limit
    client: Client = ""


class DropLimit(msgspec.Struct, frozen=True, kw_only=True, tag="drop-limit"):
    """The removal of a limit, even one from the configuration file; with `reset`, the return to the file's limit."""

    command_id: CommandId
    kind: Kind
    key: Key
    reset: bool = False
    client: Client = ""


class RuleSite(msgspec.Struct, frozen=True, kw_only=True, tag="rule-site"):
    """An operator's action on a site, or on one of its computing elements.

    `ban`, `drain`: no pilots and no jobs are sent there, and running jobs go on to their end; with a ban, pilots that have not begun
    are called back. `unban`: it is used like any other again. `test`: a canary tests it now. `forget`: its ad is removed until it
    advertises itself again.
    """

    command_id: CommandId
    action: Literal["ban", "unban", "drain", "test", "forget"]
    site: GivenName
    ce: Name = ""
    """The computing element; empty for the site with all its elements."""
    reason: Reason = ""
    client: Client = ""


ORDERED_AT_ONCE = 100
"""The most pilots in one order."""


class StartPilots(msgspec.Struct, frozen=True, kw_only=True, tag="start-pilots"):
    """An order for private pilots, which take only the sender's jobs, or the jobs of the sender's group if it shares them.

    `group_wide`: the pilots are the group's from the beginning; the group must share its jobs. Pilots not sent within
    `within_seconds` are cancelled.
    """

    command_id: CommandId
    count: Annotated[int, msgspec.Meta(ge=1, le=ORDERED_AT_ONCE)] = 1
    site: Name = ""
    ce: Name = ""
    """The computing element; empty for any with room."""
    group_wide: bool = False
    within_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 3_600.0
    client: Client = ""


class StopPilots(msgspec.Struct, frozen=True, kw_only=True, tag="stop-pilots"):
    """The cancellation of pilots not yet sent, for these orders, or without any for all of the sender's orders."""

    command_id: CommandId
    orders: Annotated[tuple[JobNumber, ...], msgspec.Meta(max_length=100)] = ()
    client: Client = ""


Rule = SetShare | ResetShare | SetLimit | DropLimit | RuleSite | StartPilots | StopPilots
Command = Submit | AddChunks | Control | Rule
