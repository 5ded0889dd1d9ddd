"""The topic `wms.job.commands`: commands of users. Key: the owner, so that one user's commands keep their order.

Only AddChunks has the command's id as its key. Such parts may arrive in any order before the Submit that names them.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from wms.bounds import (
    RULE,
    Client,
    Count,
    GivenName,
    GivenReason,
    JobNumber,
    JobRange,
    Moment,
    Name,
    Reason,
    ShareOfGroup,
    Total,
)
from wms.ids import AgreementId, CommandId
from wms.job.state import State
from wms.messages.limits import CounterKey, Kind, Limit

TOPIC = "wms.job.commands"

SUBMIT_LIMIT = 2_000
"""The most job descriptions in one Submit. A client sends more of them in several Submit commands, each with its own command id."""

CHUNKS_LIMIT = 1_000
"""The most chunks of parameter lists in one AddChunks. The size limit of messages allows only about a third of this number."""

LISTS_LIMIT = 20
"""The most parameter lists in one job description."""
PARTS_LIMIT = 100_000
"""The most AddChunks commands for the parameter lists of one job description."""

LETTERS_LIMIT = 1_000
"""The most dead letters that one order to replay or delete them may name."""

RawLists: TypeAlias = Annotated[dict[Name, msgspec.Raw], msgspec.Meta(max_length=LISTS_LIMIT)]
CHANGES_LIMIT = 64
Changes: TypeAlias = Annotated[dict[Name, msgspec.Raw], msgspec.Meta(max_length=CHANGES_LIMIT)]
"""Fields of a job description with their new values as JSON. They are checked like the fields of a submission."""


class Selector(msgspec.Struct, frozen=True, kw_only=True):
    """A choice of jobs: those that meet all given conditions. Without any condition no job is chosen."""

    ids: Annotated[tuple[JobRange, ...], msgspec.Meta(max_length=1_000)] = ()
    """Ranges of job ids, both ends included."""
    owner: Name | None = None
    states: Annotated[tuple[State, ...], msgspec.Meta(max_length=32)] = ()
    site: Name | None = None
    name: Name | None = None
    """A pattern for the job's name, with `*` and `?`."""
    job_group: Name | None = None
    submission: Name | None = None
    """The command id of a Submit; chooses the jobs of that submission by the sender, or by `owner` if given."""
    changed_since: Moment | None = None
    """Only jobs that were submitted, or changed their state, at this time or later."""
    everything: bool = False
    """Whether to choose every job on which the sender may act. Never set by default."""


class AddChunks(msgspec.Struct, frozen=True, kw_only=True, tag="add-chunks"):
    """A part of the parameter lists of a job array, too long for one message. It is kept for a Submit that names its command id."""

    command_id: CommandId
    chunks: Annotated[tuple[RawLists, ...], msgspec.Meta(max_length=CHUNKS_LIMIT)]
    """Parameter lists by name, each as JSON, with the values of the jobs that follow those of the previous part.

    A chunk has the values of a thousand jobs; only in the last part may it have fewer. They are raw JSON, so that an error in a
    value can be reported with its place.
    """
    client: Client = ""


class LongLists(msgspec.Struct, frozen=True):
    """The AddChunks commands that contain the parameter lists of one job description of a Submit.

    The description itself has the field `array` and no parameter lists.
    """

    job: Count
    """The position of the job description in the Submit, from 0."""
    parts: Annotated[tuple[CommandId, ...], msgspec.Meta(max_length=PARTS_LIMIT)]
    """The ids of the AddChunks commands, in order."""


def of_one_each(lists: tuple[LongLists, ...]) -> str:
    """Return what is wrong with the `lists` of a Submit, as text; empty if nothing is.

    Each job description, and each AddChunks command, may be named only once.
    """
    jobs = [each.job for each in lists]
    if len(set(jobs)) < len(jobs):
        return "names one description twice"
    parts = [part for each in lists for part in each.parts]
    return "names one part twice" if len(set(parts)) < len(parts) else ""


class Submit(msgspec.Struct, frozen=True, kw_only=True, tag="submit"):
    """A request to accept new jobs: all of them or none. Repeated with the same command id, it has no further effect."""

    command_id: CommandId
    jobs: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=SUBMIT_LIMIT)]
    """Job descriptions as JSON objects. They are parsed one by one, so that the errors of all of them can be reported."""
    client: Client = ""
    """The id of the user's tool that waits for the reply; empty if none waits."""
    lists: Annotated[
        tuple[LongLists, ...], msgspec.Meta(max_length=SUBMIT_LIMIT, extra={RULE: of_one_each})
    ] = ()
    """For descriptions with parameter lists too long for this message: the AddChunks commands that contain them."""
    strict: bool = False
    """Whether to refuse all jobs if one of them could run nowhere at present."""
    rehearsal: bool = False
    """Whether to check the jobs without storing them. A reply without ids means that they would be accepted."""
    hold: bool = False
    """Whether the jobs are Held from the beginning, until they are released."""


class Control(msgspec.Struct, frozen=True, kw_only=True, tag="control"):
    """A user's action on the chosen jobs. A job whose state does not allow it stays as it is and is listed in the reply."""

    command_id: CommandId
    action: Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
    """What to do. `stop_and_hold` also holds jobs that a pilot has: they are stopped, and begin anew once released.

    `edit` changes the requirements of jobs that wait or are held.
    """
    selector: Selector
    reason: Reason = ""
    changes: Changes = {}
    """For `edit` and `reschedule`: the new values of fields in the jobs' descriptions."""
    client: Client = ""


class SetShare(msgspec.Struct, frozen=True, kw_only=True, tag="set-share"):
    """An order to set the fair share of a group. It overrides the configuration file. Fields that are None stay as they are."""

    command_id: CommandId
    vo: GivenName
    owner_group: GivenName
    job_share: ShareOfGroup | None = None
    job_sharing: bool | None = None
    background: bool | None = None
    private_pilots: bool | None = None
    client: Client = ""


class ResetShare(msgspec.Struct, frozen=True, kw_only=True, tag="reset-share"):
    """An order to remove the fair share that was set for a group.

    The share of the configuration file applies again, or else the default.
    """

    command_id: CommandId
    vo: GivenName
    owner_group: GivenName
    client: Client = ""


class SetLimit(msgspec.Struct, frozen=True, kw_only=True, tag="set-limit"):
    """An order to set a limit on jobs. It replaces a limit of the same kind and key, including one of the configuration file."""

    command_id: CommandId
    limit: Limit
    client: Client = ""


class DropLimit(msgspec.Struct, frozen=True, kw_only=True, tag="drop-limit"):
    """An order to lift the limit with this kind and key, even if it is in the configuration file.

    With `reset`, what was set at run time is removed, so that the limit of the file applies again, if there is one.
    """

    command_id: CommandId
    kind: Kind
    key: CounterKey
    reset: bool = False
    client: Client = ""


class RuleSite(msgspec.Struct, frozen=True, kw_only=True, tag="rule-site"):
    """An operator's action on a site, or on one of its computing elements.

    `ban` and `drain`: no pilots or jobs are sent there, and running jobs go on to their end. A ban also cancels pilots that have
    not begun. `unban`: it is used again. `test`: a short test job (canary) tries it now. `forget`: its ad is removed until it
    advertises itself again.
    """

    command_id: CommandId
    action: Literal["ban", "unban", "drain", "test", "forget"]
    site: GivenName
    ce: Name = ""
    """The computing element. Empty: the site with all its computing elements."""
    reason: Reason = ""
    client: Client = ""


ORDERED_AT_ONCE = 100
"""The most private pilots that one StartPilots may order."""


class StartPilots(msgspec.Struct, frozen=True, kw_only=True, tag="start-pilots"):
    """A user's order for private pilots. They take only jobs of the sender, or of the sender's group if it shares its jobs.

    `group_wide`: they take the jobs of the whole group, which must share them. Pilots not sent within `within_seconds` are
    cancelled.
    """

    command_id: CommandId
    count: Annotated[int, msgspec.Meta(ge=1, le=ORDERED_AT_ONCE)] = 1
    site: Name = ""
    ce: Name = ""
    """The computing element; empty for any that has room."""
    group_wide: bool = False
    within_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 3_600.0
    client: Client = ""


class StopPilots(msgspec.Struct, frozen=True, kw_only=True, tag="stop-pilots"):
    """An order to cancel those pilots of the sender's orders for private pilots that are not sent yet.

    `orders` are the ids of these orders; empty for all of the sender's orders.
    """

    command_id: CommandId
    orders: Annotated[tuple[JobNumber, ...], msgspec.Meta(max_length=100)] = ()
    client: Client = ""


class Revoke(msgspec.Struct, frozen=True, kw_only=True, tag="revoke"):
    """An order to revoke a token, a subject or a pilot, so that messages under it are refused; with `lift`, to end a revocation."""

    command_id: CommandId
    kind: Literal["token", "subject", "pilot"]
    value: GivenName
    """The token's id (`jti`), the owner as jobs name it, or the pilot's id."""
    lift: bool = False
    for_seconds: Annotated[float, msgspec.Meta(ge=1, le=316_224_000)] | None = None
    """Seconds until the revocation ends. None: a subject is revoked until that is lifted, tokens and pilots for as long as a
    token may live."""
    reason: Reason = ""
    client: Client = ""


class CancelReservations(msgspec.Struct, frozen=True, kw_only=True, tag="cancel-reservations"):
    """An order to cancel reservations in which no job runs yet: all of them, or none. Their jobs are placed anew."""

    command_id: CommandId
    agreements: Annotated[tuple[AgreementId, ...], msgspec.Meta(min_length=1, max_length=100)]
    reason: Reason = ""
    client: Client = ""


Letters: TypeAlias = Annotated[tuple[Total, ...], msgspec.Meta(min_length=1, max_length=LETTERS_LIMIT)]
"""The ids of dead letters: messages that could not be handled."""


class ReplayDeadLetters(msgspec.Struct, frozen=True, kw_only=True, tag="replay-dead-letters"):
    """An operator's order that consumers handle dead letters (messages that could not be handled) again: all of them, or none."""

    command_id: CommandId
    letters: Letters
    reason: Reason = ""
    client: Client = ""


class DropDeadLetters(msgspec.Struct, frozen=True, kw_only=True, tag="drop-dead-letters"):
    """An operator's order to delete dead letters (messages that could not be handled): all of them, or none."""

    command_id: CommandId
    letters: Letters
    reason: GivenReason
    client: Client = ""


class SkipMessage(msgspec.Struct, frozen=True, kw_only=True, tag="skip-message"):
    """An operator's order that a consumer skips the message that comes next in a partition. It becomes a dead letter.

    While the message is being handled the order waits, for five minutes at most.
    """

    command_id: CommandId
    consumer: GivenName
    topic: GivenName
    partition: Count
    offset: Total
    reason: GivenReason
    client: Client = ""


Rule = (
    SetShare
    | ResetShare
    | SetLimit
    | DropLimit
    | RuleSite
    | StartPilots
    | StopPilots
    | Revoke
    | CancelReservations
    | ReplayDeadLetters
    | DropDeadLetters
    | SkipMessage
)
Command = Submit | AddChunks | Control | Rule
