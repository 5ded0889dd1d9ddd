"""Routes of jobs: lists and counts of jobs, one job in full, its output, and orders on jobs such as kill or hold."""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from services.gateway.route import Requester, Route
from wms.bounds import Bytes, JobNumber, Name, Reason
from wms.client.selector import normalised, select
from wms.errors import Rejected
from wms.ids import CommandId
from wms.messages import commands as ordered
from wms.messages import queries as asked
from wms.messages import replies

Words = Annotated[str, msgspec.Meta(max_length=100_000)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=asked.PAGE_LIMIT)]


class JobSelection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Conditions that select jobs: a job must meet every condition that is given. Conditions left out do not matter."""

    jobs: Words = ""
    """Ids of jobs and ranges of ids: `7`, `100-200`, `1,5,9-12`; empty: no condition on ids."""
    owner: Name | None = None
    state: Words = ""
    """States in upper or lower case, separated by commas. `ended` and `live` stand for all final and all other states."""
    site: Name | None = None
    name: Name | None = None
    """A pattern for the names of jobs, in which `*` stands for any text and `?` for one character."""
    group: Name | None = None
    """The job group, a name that the submitter gave to jobs that belong together."""
    submission: Name | None = None
    """The id of a submission by the sender of the request: only jobs of it."""
    since: datetime | None = None
    """Only jobs that were submitted or changed their state at or after this time, which must have a zone."""
    everything: bool = False
    """Whether to select every job that the token may see or control.

    For lists this is the default if no condition is given; orders need it explicitly.
    """

    def selector(self) -> ordered.Selector:
        """Return the selector message for these conditions; it selects no jobs if there are none. Raise Rejected if one is malformed."""
        if self.since is not None and self.since.tzinfo is None:
            raise Rejected("BAD_SELECTOR", "the time in `since` has no zone", "write 2026-01-31T12:00:00Z")
        chosen = select(
            self.jobs,
            owner=self.owner,
            state=self.state,
            site=self.site,
            name=self.name,
            group=self.group,
            submission=self.submission,
            since=self.since,
            everything=self.everything,
        )
        return normalised(chosen)

    def listed(self) -> ordered.Selector:
        """Return the selector message for a list: without a condition, it selects every job that the token may see.

        Raise Rejected if a condition is malformed.
        """
        chosen = self.selector()
        return msgspec.structs.replace(chosen, everything=True) if chosen == NO_JOBS else chosen


NO_JOBS: Final = normalised(select())


class JobList(JobSelection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of selected jobs. A page whose answer has no `after` is the last; any other page may be short or even empty."""

    after: JobNumber | None = None
    """The last job id of the previous page, which that page's answer has as its `after`; None: the first page."""
    newest: bool = False
    """Whether to list the newest jobs first, that is by descending ids."""
    limit: PageSize = 100
    alone: bool = False
    """Whether to list only jobs that belong to no sweep."""
    results: bool = False
    """Whether to tell of each job how its last attempt went, where its details may be seen."""


class JobTally(JobSelection, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a request for the number of selected jobs in each state."""

    by_reason: bool = False
    """Whether to count the jobs also by the reason for their state."""
    in_pieces: bool = False
    """Whether the answer may count the newest jobs alone, if there are very many (`counted_from`). Else such a request is refused."""
    below: JobNumber | None = None
    """Where the answer before ended (`counted_from`): only jobs with lower ids are counted."""


class SweepList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a page of sweeps (job arrays: many jobs of one description)."""

    owner: Name | None = None
    state: Words = ""
    """States of jobs, separated by commas. Only sweeps with at least one job in one of these states are listed."""
    group: Name | None = None
    since: datetime | None = None
    after: JobNumber | None = None
    newest: bool = False
    limit: PageSize = 50


class OneJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameter in the path of requests about one job: its id."""

    job_id: JobNumber


class LogPiece(OneJob, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a request for part of a job's stdout or stderr: at most `limit` bytes."""

    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Bytes | None = None
    """The position of the first byte to return; None: return the last bytes."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=65_536)] = 16_384
    raw: bool = False
    """Return the text as it was printed, with characters that can take a terminal over."""
    whole: bool = False
    """Count all bytes that were printed, of an ended job too, of which only the last are stored."""


class JobOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an order: an action, the selected jobs, and the reason, which goes into the jobs' histories."""

    action: Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]
    """What to do. `hold` concerns jobs that no pilot has; `stop_and_hold` also stops and holds the others.

    `edit` changes requirements and priority of waiting or held jobs.
    """
    selection: JobSelection
    reason: Reason = ""
    changes: ordered.Changes = {}
    """For `edit` and `reschedule`: new values of fields of the job description, by field name."""


def _list_jobs(sender: Requester, given: JobList) -> asked.ListJobs:
    return asked.ListJobs(
        query_id=sender.id,
        client=sender.client,
        selector=given.listed(),
        after=given.after,
        newest=given.newest,
        limit=given.limit,
        alone=given.alone,
        results=given.results,
    )


def _count_jobs(sender: Requester, given: JobTally) -> asked.CountJobs:
    return asked.CountJobs(
        query_id=sender.id,
        client=sender.client,
        selector=given.listed(),
        by_reason=given.by_reason,
        in_pieces=given.in_pieces,
        below=given.below,
    )


def _list_sweeps(sender: Requester, given: SweepList) -> asked.ListSweeps:
    return asked.ListSweeps(
        query_id=sender.id,
        client=sender.client,
        owner=given.owner,
        states=select(state=given.state).states,
        after=given.after,
        newest=given.newest,
        limit=given.limit,
        job_group=given.group,
        changed_since=given.since,
    )


def _show_job(sender: Requester, given: OneJob) -> asked.ShowJob:
    return asked.ShowJob(query_id=sender.id, client=sender.client, job_id=given.job_id)


def _why_job(sender: Requester, given: OneJob) -> asked.WhyJob:
    return asked.WhyJob(query_id=sender.id, client=sender.client, job_id=given.job_id)


def _show_ranking(sender: Requester, given: OneJob) -> asked.ShowRanking:
    return asked.ShowRanking(query_id=sender.id, client=sender.client, job_id=given.job_id)


def _peek_job(sender: Requester, given: LogPiece) -> asked.PeekJob:
    return asked.PeekJob(
        query_id=sender.id,
        client=sender.client,
        job_id=given.job_id,
        stream=given.stream,
        offset=given.offset,
        limit=given.limit,
        raw=given.raw,
        whole=given.whole,
    )


def _control(sender: Requester, _: msgspec.Struct, order: JobOrder) -> ordered.Control:
    selector = order.selection.selector()
    if selector == ordered.Selector():
        raise Rejected(
            "NOTHING_SELECTED", f"no job is named to {order.action}", "name jobs, or say everything"
        )
    return ordered.Control(
        command_id=CommandId(sender.id),
        action=order.action,
        selector=selector,
        reason=order.reason,
        changes=order.changes,
        client=sender.client,
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/jobs",
        summary="A page of the selected jobs; without a condition, of all",
        parameters=JobList,
        message=_list_jobs,
        answer=replies.JobPage,
    ),
    Route(
        method="GET",
        path="/jobs/counts",
        summary="How many of the selected jobs are in each state",
        parameters=JobTally,
        message=_count_jobs,
        answer=replies.JobCounts,
    ),
    Route(
        method="GET",
        path="/sweeps",
        summary="A page of sweeps, each with its jobs by state",
        parameters=SweepList,
        message=_list_sweeps,
        answer=replies.SweepPage,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}",
        for_payloads=True,
        summary="One job in full: description, attempts, history with reasons",
        parameters=OneJob,
        message=_show_job,
        answer=replies.JobDetail,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/attempts",
        for_payloads=True,
        summary="The attempts of a job, the first one first",
        parameters=OneJob,
        message=_show_job,
        reply=replies.JobDetail,
        answer=tuple[replies.Attempt, ...],
        view=lambda job: job.attempts,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/timeline",
        for_payloads=True,
        summary="Each move of a job with its time and its reason",
        parameters=OneJob,
        message=_show_job,
        reply=replies.JobDetail,
        answer=tuple[replies.HistoryLine, ...],
        view=lambda job: job.history,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/why",
        for_payloads=True,
        summary="Why a job is in its state, and what would help",
        parameters=OneJob,
        message=_why_job,
        answer=replies.JobWhy,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/ranking",
        summary="The record of a brokered job: elements, placements, agreements",
        parameters=OneJob,
        message=_show_ranking,
        answer=replies.JobRanking,
    ),
    Route(
        method="GET",
        path="/jobs/{job_id}/logs",
        summary="A piece of what a job has printed, from its pilot while it runs",
        parameters=LogPiece,
        message=_peek_job,
        answer=replies.JobOutput,
    ),
    Route(
        method="POST",
        path="/orders",
        summary="Kill, hold, release, reschedule, remove or edit the selected jobs",
        body=JobOrder,
        message=_control,
        answer=replies.Controlled,
    ),
)
