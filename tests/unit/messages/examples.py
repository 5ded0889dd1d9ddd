"""One message of each kind with every field said, and one with only what must be said: what the golden files mean."""

from datetime import UTC, datetime
from typing import Any, get_args

import msgspec

from tests.unit.messages import (
    access_examples,
    dead_letter_examples,
    exchange_examples,
    lease_examples,
    overview_examples,
    ranking_examples,
    reservation_examples,
    usage_examples,
)
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementState
from wms.ids import AgreementId, AttemptId, CommandId, Epoch, JobId, PilotId, ReportId, RequestId, TaskQueueId
from wms.job.reasons import Code
from wms.job.state import Event, State
from wms.matching.grouping import Requirements
from wms.messages import (
    ads,
    agreements,
    broker,
    commands,
    database_marks,
    events,
    match_requests,
    pilot_exchange,
    queries,
    queue_changes,
    replies,
    reports,
    site_inbox,
)
from wms.messages.limits import CounterKey, Limit
from wms.site import ComputingElement, Resource

AT = datetime(2026, 3, 1, 12, 30, 15, 250_000, UTC)
LATER = datetime(2026, 3, 1, 13, 0, tzinfo=UTC)
DESCRIPTION = msgspec.Raw(b'{"executable":"./sim","arguments":["--seed","7"],"tags":["gpu"]}')
SHA = "0f" * 32
PILOT = PilotId("p-6f1d2c3b4a596877")
JOB, EPOCH = JobId(1042), Epoch(3)
AGREEMENT = AgreementId("1042-1-0")
ATTEMPT_ID = AttemptId(JOB, EPOCH)
ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}
OFFERED_TO: dict[str, Any] = {"pilot_id": PILOT, "request_id": RequestId("r-1")}

SELECTOR = commands.Selector(
    ids=((1, 9), (20, 20)),
    owner="alice",
    states=(State.WAITING, State.RUNNING),
    site="glasgow",
    name="sim-*",
    everything=True,
)
RESOURCE = Resource(
    setup="production",
    vo="lhcb",
    cpu_time=86_400,
    site="glasgow",
    grid_ce="ce01",
    pilot_type="private",
    platforms=("Linux-x86_64", "Linux-x86_64-glibc-2.34"),
    job_types=("MCSimulation", "User"),
    banned_job_types=("Merge",),
    memory_mb=16_000,
    processors=8,
    tags=("gpu", "ssd"),
    required_tags=("gpu",),
    generic=False,
    owner="alice",
    owner_group="lhcb_user",
    job_sharing=True,
)
ELEMENT = ComputingElement(
    site="glasgow",
    ce="ce01",
    slots=64,
    max_cpu_time=345_600,
    setup="production",
    dispatcher="slurm",
    grid_middleware="ARC6",
    submit_pools=("gridpp",),
    pilot_type="generic",
    platforms=("Linux-x86_64",),
    job_types=("User",),
    vos=("atlas", "lhcb"),
    cores=64,
    memory_mb=128_000,
    tags=("gpu", "ssd"),
    required_tags=("gpu",),
    slots_per_pilot=8,
    cores_per_pilot=8,
    max_pilots=8,
    max_waiting_pilots=2,
    max_jobs=64,
    max_submitting_jobs=10,
    current_jobs=12,
    current_submitting_jobs=1,
    load=17.25,
)
REQUIREMENTS = Requirements(
    owner="alice",
    owner_group="lhcb_user",
    vo="lhcb",
    setup="production",
    cpu_segment=50_000,
    submit_pools=("gridpp",),
    pilot_types=("generic",),
    sites=("glasgow", "manchester"),
    banned_sites=("oxford",),
    grid_ces=("ce01",),
    grid_middlewares=("ARC6",),
    platforms=("Linux-x86_64",),
    job_types=("User",),
    tags=("gpu", "ssd"),
    min_ram_mb=4_000,
    requirements="other.Load < 2.0",
)
QUARANTINED_LINE = replies.SiteLine(
    site="glasgow",
    ce="ce01",
    dispatcher="slurm",
    advertised_at=AT,
    expires_at=LATER,
    fresh=True,
    ad={"slots": 64},
    pilots=1,
    running_jobs=0,
    notices=("avoid: 4 of 5 pilots died unseen within the hour",),
    state="quarantined",
    until=LATER,
    reason="it eats jobs: 9 of 10 attempts failed within 30 s, and they are of 4 owners",
    said_by="pilot_submitter",
)
ISOLATED_LINE = replies.SiteLine(
    site="glasgow",
    ce="ce01",
    dispatcher="local",
    advertised_at=AT,
    expires_at=LATER,
    fresh=True,
    ad={},
    pilots=1,
    running_jobs=0,
    isolation=("account",),
)
SAM_LINE = replies.SiteLine(
    site="glasgow",
    ce="ce01",
    dispatcher="local",
    advertised_at=AT,
    expires_at=LATER,
    fresh=True,
    ad={},
    pilots=1,
    running_jobs=0,
    stations=("cab", "clued0"),
)

FULL_LINE = replies.SiteLine(
    site="glasgow",
    ce="ce01",
    dispatcher="slurm",
    advertised_at=AT,
    expires_at=LATER,
    fresh=True,
    ad={"slots": 64, "max_jobs": 90, "current_jobs": 88},
    pilots=3,
    running_jobs=1,
    jobs_there=replies.JobsThere(
        source=88,
        source_submitting=2,
        pilots=3,
        jobs=1,
        unseen=1,
        idle=1,
        pilots_left=1,
        jobs_left=3,
    ),
    entry_point="ce01.example.org:2119/jobmanager-pbs",
    monitoring_database="https://db.example.org/xml",
)
PLAN_LINE = replies.PlanLine(
    decided_at=AT,
    decision=replies.Decision(
        site="glasgow",
        ce="ce01",
        ordered=2,
        reasons=("2 of VO lhcb: 16 jobs wait that no pilot there is could take, 8 a pilot",),
        submitted=1,
        waiting=2,
        running=5,
        idle_slots=3,
        ending=1,
        room=7,
        shares=(
            replies.Share(
                vo="lhcb",
                cpu_segment=50_000,
                processors=1,
                wanted=40,
                taken=11,
                sent=2,
                elsewhere=16,
                held="NO_ROOM",
                why="full: 8 of 8 pilots",
            ),
        ),
    ),
)
PLAIN_REQUIREMENTS = Requirements(
    owner="bob", owner_group="user", vo="local", setup="default", cpu_segment=500
)
USAGE = reports.Usage(
    cpu_user_seconds=58.25,
    cpu_system_seconds=1.5,
    wall_seconds=61.0,
    max_rss_bytes=209_715_200,
    disk_bytes=4_096,
)
RESULT = reports.Result(
    job_id=JOB,
    epoch=EPOCH,
    outcome="failed",
    code=Code.EXIT_CODE,
    text="exit code 3",
    exit_code=3,
    signal=15,
    started_at=AT,
    usage=USAGE,
    output_sha256=SHA,
    output_bytes=1_234,
    stdout_tail="event 41 of 42\n",
    stderr_tail="größer als erlaubt\n",
)
LINE = replies.JobLine(
    job_id=JOB,
    name="sim-7",
    owner="alice",
    owner_group="lhcb_user",
    vo="lhcb",
    state="Running",
    reason="STARTED",
    site="glasgow",
    attempts=2,
    submitted_at=AT,
    changed_at=LATER,
)
WAITING_LINE = msgspec.structs.replace(LINE, state="Waiting", reason="QUEUED", site=None, attempts=0)
ATTEMPT = replies.Attempt(
    epoch=3,
    pilot_id=PILOT,
    site="glasgow",
    ce="ce01",
    offered_at=AT,
    accepted_at=AT,
    started_at=AT,
    ended_at=LATER,
    outcome="failed",
    reason="EXIT_CODE",
    reason_text="exit code 3",
    exit_code=3,
    signal=15,
    cpu_seconds=59.75,
    wall_seconds=61.0,
    max_rss_bytes=209_715_200,
    disk_bytes=4_096,
    output_sha256=SHA,
    output_bytes=1_234,
)
POINTS = ((0, 0, 51_200), (5, 4_900, 204_800))
OFFERED_ATTEMPT = replies.Attempt(
    epoch=1,
    pilot_id=PILOT,
    site="glasgow",
    ce="ce01",
    offered_at=AT,
    usage_points=(),
    **dict.fromkeys(
        (
            "accepted_at",
            "started_at",
            "ended_at",
            "outcome",
            "reason",
            "reason_text",
            "exit_code",
            "signal",
            "cpu_seconds",
            "wall_seconds",
            "max_rss_bytes",
            "disk_bytes",
            "output_sha256",
            "output_bytes",
        )
    ),
)
HISTORY = replies.HistoryLine(
    seq=4,
    at=LATER,
    event="start",
    state="Running",
    epoch=3,
    reason="STARTED",
    text="pilot says",
    source="job_agent",
)
VERDICT = replies.CeVerdict(
    site="glasgow",
    ce="ce01",
    fits=False,
    clauses=("Tags: the job needs fpga",),
    pilots=2,
    free_slots=3,
)
PILOT_LINE = replies.PilotLine(
    pilot_id=PILOT,
    site="glasgow",
    ce="ce01",
    vo="lhcb",
    state="Running",
    slots=8,
    busy=5,
    jobs_done=31,
    submitted_at=AT,
    seen_at=LATER,
    reason="8 jobs wait",
)


MARK = database_marks.DatabaseMark(
    incarnation_id="0123456789abcdef0123456789abcdef",
    age=86_400,
    last_job_id=JobId(812),
    marked_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
)

FULL: dict[str, msgspec.Struct] = {
    "submit": commands.Submit(
        command_id=CommandId("c-1"),
        jobs=(DESCRIPTION, msgspec.Raw(b'{"executable":"date"}')),
        client="cli-7",
    ),
    "broker-job": broker.BrokerJob(
        job_id=JOB, seq=3, at=AT, owner="alice", owner_group="lhcb_user", vo="lhcb"
    ),
    "placement-failed": broker.PlacementFailed(
        job_id=JOB,
        seq=5,
        attempt=1,
        site="glasgow",
        ce="ce01",
        code="TOO_LATE",
        text="its latest start passed",
        at=AT,
    ),
    "placements-ordered": broker.PlacementsOrdered(jobs=40, at=AT),
    "add-chunks": commands.AddChunks(
        command_id=CommandId("c-1/0/0"),
        chunks=({"file": msgspec.Raw(b'["a.txt","b.txt"]'), "seed": msgspec.Raw(b'["1","2"]')},),
        client="cli-7",
    ),
    "control": commands.Control(
        command_id=CommandId("c-2"), action="hold", selector=SELECTOR, reason="new release", client="cli-7"
    ),
    "list-jobs": queries.ListJobs(**ASKED, selector=SELECTOR, after=41, newest=True, limit=50),
    "list-sweeps": queries.ListSweeps(
        **ASKED, owner="alice", states=(State.WAITING, State.RUNNING), after=17, newest=True, limit=25
    ),
    "count-jobs": queries.CountJobs(**ASKED, selector=SELECTOR),
    "show-job": queries.ShowJob(**ASKED, job_id=JOB),
    "why-job": queries.WhyJob(**ASKED, job_id=JOB),
    "peek-job": queries.PeekJob(**ASKED, job_id=JOB, stream="stderr", offset=512, limit=1_024),
    "list-queues": queries.ListQueues(**ASKED),
    "list-sites": queries.ListSites(**ASKED),
    "list-pilots": queries.ListPilots(**ASKED, ended=True),
    "show-pilot": queries.ShowPilot(**ASKED, pilot_id=PILOT),
    "submitted": replies.Submitted(
        command_id=CommandId("c-1"),
        client="cli-7",
        ids=((1042, 1043), (1100, 1100)),
        repeated=True,
        warnings=("no site has so many processors today",),
    ),
    "values-kept": replies.ValuesKept(command_id=CommandId("c-1/0/0"), client="cli-7"),
    "refused": replies.Refused(
        reply_to="c-1",
        client="cli-7",
        code="DESCRIPTION_INVALID",
        message="2 problems",
        remedy="mend them",
        details=("jobs[0].cpu_time: must be a whole number", "jobs[1].colour: unknown key"),
    ),
    "controlled": replies.Controlled(
        command_id=CommandId("c-2"),
        client="cli-7",
        changed=9,
        unchanged=(replies.Unchanged(20, "job 20 is Done"),),
        unchanged_total=1,
        repeated=True,
    ),
    "job-page": replies.JobPage(**ASKED, jobs=(LINE, WAITING_LINE), after=1_042),
    "sweep-page": replies.SweepPage(
        **ASKED,
        sweeps=(
            replies.SweepLine(
                first=1042,
                last=2041,
                name="sim-{n}",
                owner="alice",
                owner_group="lhcb_user",
                vo="lhcb",
                counts={"Waiting": 990, "Done": 10},
                submitted_at=AT,
            ),
        ),
        after=1042,
    ),
    "job-counts": replies.JobCounts(**ASKED, counts={"Waiting": 7, "Done": 35}),
    "job-detail": replies.JobDetail(
        **ASKED,
        job=LINE,
        array_index=7,
        description={"executable": "./sim", "arguments": ["--seed", "7"]},
        attempts=(OFFERED_ATTEMPT, ATTEMPT),
        history=(HISTORY,),
    ),
    "job-why": replies.JobWhy(
        **ASKED,
        job_id=JOB,
        state="Waiting",
        code="NO_FIT",
        summary="none of the 1 computing elements fits",
        advice="ask for less",
        ahead=12,
        elements=(VERDICT,),
    ),
    "job-output": replies.JobOutput(
        **ASKED, job_id=JOB, stream="stdout", offset=512, size=600, text="event 41 of 42\n", live=True
    ),
    "queues": replies.Queues(
        **ASKED,
        queues=(
            replies.QueueLine(
                tq_id=5,
                owner="alice",
                owner_group="lhcb_user",
                vo="lhcb",
                cpu_segment=50_000,
                waiting=120,
                requirements={"tags": ["gpu"]},
            ),
        ),
    ),
    "sites": replies.Sites(
        **ASKED,
        sites=(
            replies.SiteLine(
                site="glasgow",
                ce="ce01",
                dispatcher="local",
                advertised_at=AT,
                expires_at=LATER,
                fresh=True,
                ad={"slots": 64},
                pilots=2,
                running_jobs=13,
            ),
        ),
    ),
    "pilots": replies.Pilots(**ASKED, pilots=(PILOT_LINE,)),
    "pilot-detail": replies.PilotDetail(
        **ASKED,
        pilot=PILOT_LINE,
        dispatcher="slurm",
        reference="4711",
        started_at=AT,
        ended_at=LATER,
        word="Failed: node_fail",
        word_at=LATER,
        cause="NODE_LOST",
        output="lost its node\n",
    ),
    "advertise": ads.Advertise(element=ELEMENT, advertised_at=AT, lifetime_seconds=180.0),
    "withdraw": ads.Withdraw(site="glasgow", ce="ce01", advertised_at=AT),
    "advertiser-state": ads.AdvertiserState(
        host="gate.glasgow.example.org",
        pid=4_711,
        version="0.1.0",
        troubles=(ads.LoopTrouble(loop="advertise-slurm-0", text="fails for 40 s: squeue"),),
    ),
    "match-request": match_requests.MatchRequest(**OFFERED_TO, resource=RESOURCE, slots=8, packed=False),
    "offer": site_inbox.Offer(
        **OFFERED_TO,
        jobs=(
            site_inbox.OfferedJob(
                job_id=JOB,
                epoch=EPOCH,
                owner="alice",
                owner_group="lhcb_user",
                vo="lhcb",
                description=DESCRIPTION,
                array_index=7,
            ),
        ),
        hold_seconds=30.0,
    ),
    "no-match": site_inbox.NoMatch(
        **OFFERED_TO, code="NO_FIT", reason="Tags: fpga (12 jobs)", retry_after_seconds=1.5
    ),
    "answer": site_inbox.Answer(
        pilot_id=PILOT,
        report_id=ReportId("rep-9"),
        granted=(ATTEMPT_ID,),
        lost=(AttemptId(JobId(8), Epoch(1)),),
        kill=(AttemptId(JobId(9), Epoch(2)),),
        recorded=(AttemptId(JobId(10), Epoch(1)),),
        lease_seconds=120.0,
        drain=True,
    ),
    "kill": site_inbox.Kill(pilot_id=PILOT, jobs=(ATTEMPT_ID, AttemptId(JobId(9), Epoch(2)))),
    "peek": site_inbox.Peek(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stdout",
        offset=512,
        limit=1_024,
        asker="alice",
        **ASKED,
    ),
    "token-renewal": site_inbox.TokenRenewal(pilot_id=PILOT, sealed=("bmV3IHRva2Vu", "b2xkIHNlYWw=")),
    "report": reports.Report(
        report_id=ReportId("rep-9"),
        pilot_id=PILOT,
        decline=(AttemptId(JobId(1), Epoch(1)),),
        accept=(AttemptId(JobId(2), Epoch(1)),),
        start=(AttemptId(JobId(3), Epoch(2)),),
        renew=(AttemptId(JobId(4), Epoch(5)),),
        finish=(RESULT,),
        state="draining",
        slots=8,
        busy=3,
        reason="its lifetime is over",
    ),
    "peeked": reports.Peeked(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stdout",
        offset=512,
        size=600,
        text="event 41 of 42\n",
        asker="alice",
        **ASKED,
    ),
    "job-event": events.JobEvent(
        job_id=JOB,
        seq=5,
        at=AT,
        event=Event.RESCHEDULE,
        state=State.RESCHEDULED,
        epoch=EPOCH,
        owner="alice",
        vo="lhcb",
        reason="LEASE_EXPIRED",
        text="pilot p-6f1d2c3b4a596877 was not heard of",
        site="glasgow",
    ),
    "jobs-moved": events.JobsMoved(
        events=(
            events.JobEvent(
                job_id=JOB,
                seq=5,
                at=AT,
                event=Event.RESCHEDULE,
                state=State.RESCHEDULED,
                epoch=EPOCH,
                owner="alice",
                vo="lhcb",
                reason="LEASE_EXPIRED",
                text="pilot p-6f1d2c3b4a596877 was not heard of",
                site="glasgow",
            ),
        )
    ),
    "jobs-queued": events.JobsQueued(
        first=JobId(1042), count=2, at=AT, owner="alice", owner_group="lhcb_user", vo="lhcb"
    ),
    "wait-reason": events.WaitReason(
        tq_id=TaskQueueId(7),
        at=AT,
        code="IMPOSSIBLE_NOW",
        text="no computing element advertised now could run it; 1 computing element that could does not advertise now",
        waiting=1_200,
        owner="alice",
        owner_group="lhcb_user",
        vo="lhcb",
    ),
    "sweep-moved": events.SweepMoved(
        first=JobId(1042),
        count=1_000,
        seq=3,
        at=AT,
        event=Event.KILL,
        state=State.KILLED,
        owner="alice",
        owner_group="lhcb_user",
        vo="lhcb",
        reason="KILLED_BY_USER",
        text="wrong input",
    ),
    "entered": queue_changes.Entered(
        tq_id=TaskQueueId(5), requirements=REQUIREMENTS, user_priority=2.0, job_ids=(JOB, JobId(1043))
    ),
    "jobs-entered": queue_changes.JobsEntered(
        levels=((TaskQueueId(5), 2.0, (JOB, JobId(1043))), (TaskQueueId(6), 1.0, (JobId(1044),)))
    ),
    "left": queue_changes.Left(job_ids=(JOB, JobId(1043))),
    "opened": queue_changes.Opened(
        keys=(CounterKey("glasgow", "ce01", "owner", "alice"), CounterKey("glasgow", "", "any", ""))
    ),
    "rules-changed": queue_changes.RulesChanged(),
    "reserve": agreements.Reserve(
        agreement_id=AGREEMENT,
        job_id=JOB,
        vo="lhcb",
        owner="alice",
        group="lhcb_user",
        site="glasgow",
        ce="ce01",
        cpus=8,
        duration_seconds=3_600.0,
        earliest_start=AT,
        latest_start=LATER,
        flexible=True,
        expires_in_seconds=90.0,
    ),
    "confirm": agreements.Confirm(agreement_id=AGREEMENT, site="glasgow"),
    "cancel": agreements.Cancel(
        agreement_id=AGREEMENT, site="glasgow", code=AgreementReason.CANCELLED_BY_USER, text="by alice"
    ),
    "agreement-decision": agreements.AgreementDecided(
        agreement_id=AGREEMENT,
        job_id=JOB,
        site="glasgow",
        ce="ce01",
        state=AgreementState.TEMPORARY,
        start_at=AT,
        ends_at=LATER,
        reservation="wms-1042-1-0",
        expires_at=LATER,
        code=AgreementReason.GRANTED,
        text="8 CPUs from 12:30:15 on",
    ),
    "set-share": commands.SetShare(
        command_id=CommandId("c-5"),
        vo="lhcb",
        owner_group="production",
        job_share=2000.0,
        job_sharing=True,
        background=False,
        client="cli-7",
    ),
    "reset-share": commands.ResetShare(
        command_id=CommandId("c-6"), vo="lhcb", owner_group="production", client="cli-7"
    ),
    "set-limit": commands.SetLimit(
        command_id=CommandId("c-7"),
        limit=Limit(
            kind="rate", site="glasgow", ce="ce01", attribute="owner", value="*", most=10, per_second=2.5
        ),
        client="cli-7",
    ),
    "start-pilots": commands.StartPilots(
        command_id=CommandId("c-20"),
        count=5,
        site="glasgow",
        ce="ce01",
        group_wide=True,
        within_seconds=600.0,
        client="cli-7",
    ),
    "stop-pilots": commands.StopPilots(command_id=CommandId("c-21"), orders=(3, 4), client="cli-7"),
    "list-pilot-orders": queries.ListPilotOrders(**ASKED),
    "pilot-orders": replies.PilotOrders(
        **ASKED,
        orders=(
            replies.PilotOrderLine(
                order_id=3,
                vo="lhcb",
                owner_group="lhcb_user",
                owner="alice",
                group_wide=False,
                site="glasgow",
                ce="",
                wanted=5,
                sent=2,
                alive=1,
                state="open",
                ordered_at=AT,
                expires_at=LATER,
                held="no room at glasgow/ce01",
            ),
        ),
        after=100,
    ),
    "drop-limit": commands.DropLimit(
        command_id=CommandId("c-8"),
        kind="running",
        key=CounterKey("glasgow", "", "tag", "gpu"),
        reset=True,
        client="cli-7",
    ),
    "list-limits": queries.ListLimits(**ASKED),
    "limit-list": replies.LimitList(
        **ASKED,
        limits=(
            replies.LimitLine(
                limit=Limit(
                    kind="rate",
                    site="*",
                    ce="ce01",
                    attribute="owner_group",
                    value="*",
                    most=50,
                    per_second=0.5,
                ),
                lifted=True,
                source="set",
                said_by="alice",
            ),
        ),
        counts=(
            replies.CountLine(site="glasgow", ce="ce01", attribute="owner_group", value="lhcb", running=49),
        ),
    ),
    "list-shares": queries.ListShares(**ASKED),
    "rule-site": commands.RuleSite(
        command_id=CommandId("c-9"),
        action="ban",
        site="glasgow",
        ce="ce01",
        reason="jobs lose their files",
        client="cli-7",
    ),
    "element-state": events.ElementState(
        site="glasgow",
        ce="ce01",
        at=AT,
        event="eat",
        state="quarantined",
        until=LATER,
        reason="it eats jobs: 9 of 10 attempts failed within 30 s, and they are of 4 owners",
        said_by="pilot_submitter",
    ),
    "show-site": queries.ShowSite(**ASKED, site="glasgow", ce="ce01"),
    "list-plans": queries.ListPlans(**ASKED),
    "site-detail": replies.SiteDetail(
        **ASKED,
        elements=(QUARANTINED_LINE,),
        moves=(
            replies.SiteMove(
                at=AT,
                site="glasgow",
                ce="ce01",
                before="healthy",
                event="eat",
                state="quarantined",
                reason="it eats jobs",
                said_by="pilot_submitter",
            ),
        ),
        canaries=(
            replies.CanaryLine(
                job_id=1050, site="glasgow", ce="ce01", sent_at=AT, asked_by="ops", outcome="Failed"
            ),
        ),
        plans=(PLAN_LINE,),
    ),
    "plans": replies.Plans(**ASKED, plans=(PLAN_LINE,)),
    "ruled": replies.Ruled(
        command_id=CommandId("c-5"),
        client="cli-7",
        said="lhcb/production has a share of 2000, its members share it",
        repeated=True,
    ),
    "shares": replies.Shares(
        **ASKED,
        shares=(
            replies.ShareLine(
                vo="lhcb",
                owner_group="production",
                job_share=2000.0,
                job_sharing=True,
                background=False,
                source="set",
                said_by="alice",
                owners=2,
                waiting_jobs=1200,
                running_jobs=80,
            ),
        ),
    ),
    **ranking_examples.FULL,
    **reservation_examples.FULL,
    **access_examples.FULL,
    **dead_letter_examples.FULL,
    **usage_examples.FULL,
    **lease_examples.FULL,
    **overview_examples.FULL,
    **exchange_examples.FULL,
    "database-mark": MARK,
}
"""By tag: every field said, none at its default."""

MINIMAL: dict[str, msgspec.Struct] = {
    "submit": commands.Submit(command_id=CommandId("c-1"), jobs=(msgspec.Raw(b'{"executable":"date"}'),)),
    "broker-job": broker.BrokerJob(
        job_id=JOB, seq=3, at=AT, owner="alice", owner_group="lhcb_user", vo="lhcb"
    ),
    "placement-failed": broker.PlacementFailed(
        job_id=JOB, seq=5, attempt=1, site="glasgow", ce="ce01", code="TOO_LATE", at=AT
    ),
    "placements-ordered": broker.PlacementsOrdered(jobs=1, at=AT),
    "add-chunks": commands.AddChunks(command_id=CommandId("c-1/0/0"), chunks=()),
    "control": commands.Control(command_id=CommandId("c-2"), action="kill", selector=commands.Selector()),
    "list-jobs": queries.ListJobs(query_id="q-1", selector=commands.Selector()),
    "list-sweeps": queries.ListSweeps(query_id="q-1"),
    "count-jobs": queries.CountJobs(query_id="q-1", selector=commands.Selector()),
    "show-job": queries.ShowJob(query_id="q-1", job_id=JOB),
    "why-job": queries.WhyJob(query_id="q-1", job_id=JOB),
    "peek-job": queries.PeekJob(query_id="q-1", job_id=JOB),
    "list-queues": queries.ListQueues(query_id="q-1"),
    "list-sites": queries.ListSites(query_id="q-1"),
    "list-pilots": queries.ListPilots(query_id="q-1"),
    "show-pilot": queries.ShowPilot(query_id="q-1", pilot_id=PILOT),
    "submitted": replies.Submitted(command_id=CommandId("c-1"), client="", ids=()),
    "values-kept": replies.ValuesKept(command_id=CommandId("c-1/0/0"), client=""),
    "refused": replies.Refused(reply_to="c-1", client="", code="NOT_ALLOWED", message="no"),
    "controlled": replies.Controlled(command_id=CommandId("c-2"), client="", changed=0),
    "job-page": replies.JobPage(**ASKED, jobs=(), after=None),
    "sweep-page": replies.SweepPage(**ASKED, sweeps=(), after=None),
    "job-counts": replies.JobCounts(**ASKED, counts={}),
    "job-detail": replies.JobDetail(
        **ASKED, job=WAITING_LINE, array_index=None, description={}, attempts=(), history=()
    ),
    "job-why": replies.JobWhy(**ASKED, job_id=JOB, state="Done", code="DONE", summary="Done"),
    "job-output": replies.JobOutput(
        **ASKED, job_id=JOB, stream="stderr", offset=0, size=0, text="", live=False
    ),
    "queues": replies.Queues(**ASKED, queues=()),
    "sites": replies.Sites(**ASKED, sites=()),
    "pilots": replies.Pilots(**ASKED, pilots=()),
    "pilot-detail": replies.PilotDetail(
        **ASKED,
        pilot=PILOT_LINE,
        dispatcher="slurm",
        reference=None,
        started_at=None,
        ended_at=None,
        word=None,
        word_at=None,
        cause=None,
        output=None,
    ),
    "advertise": ads.Advertise(
        element=ComputingElement(site="local", ce="local", slots=2, max_cpu_time=3_600), advertised_at=AT
    ),
    "withdraw": ads.Withdraw(site="local", ce="local", advertised_at=AT),
    "advertiser-state": ads.AdvertiserState(host="node", pid=1, version="0.1.0"),
    "match-request": match_requests.MatchRequest(
        **OFFERED_TO, resource=Resource(setup="default", vo="local", cpu_time=3_600)
    ),
    "offer": site_inbox.Offer(**OFFERED_TO, jobs=(), hold_seconds=30.0),
    "no-match": site_inbox.NoMatch(**OFFERED_TO, code="NO_JOBS", reason="", retry_after_seconds=1.0),
    "answer": site_inbox.Answer(pilot_id=PILOT, report_id=ReportId("rep-9")),
    "kill": site_inbox.Kill(pilot_id=PILOT, jobs=()),
    "token-renewal": site_inbox.TokenRenewal(pilot_id=PILOT, sealed=()),
    "peek": site_inbox.Peek(
        pilot_id=PILOT, job_id=JOB, epoch=EPOCH, stream="stderr", offset=None, limit=1, asker="bob", **ASKED
    ),
    "report": reports.Report(report_id=ReportId("rep-9"), pilot_id=PILOT),
    "peeked": reports.Peeked(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stderr",
        offset=0,
        size=0,
        text="",
        asker="bob",
        **ASKED,
    ),
    "job-event": events.JobEvent(
        job_id=JOB,
        seq=1,
        at=AT,
        event=Event.KILL,
        state=State.KILLED,
        epoch=Epoch(0),
        owner="bob",
        vo="local",
    ),
    "jobs-moved": events.JobsMoved(events=()),
    "jobs-queued": events.JobsQueued(
        first=JobId(1), count=1, at=AT, owner="bob", owner_group="user", vo="local"
    ),
    "wait-reason": events.WaitReason(
        tq_id=TaskQueueId(1),
        at=AT,
        code="SOON",
        text="",
        waiting=1,
        owner="bob",
        owner_group="user",
        vo="local",
    ),
    "sweep-moved": events.SweepMoved(
        first=JobId(1),
        count=1,
        seq=3,
        at=AT,
        event=Event.HOLD,
        state=State.HELD,
        owner="bob",
        owner_group="user",
        vo="local",
    ),
    "entered": queue_changes.Entered(
        tq_id=TaskQueueId(1), requirements=PLAIN_REQUIREMENTS, user_priority=0.0, job_ids=()
    ),
    "jobs-entered": queue_changes.JobsEntered(levels=()),
    "left": queue_changes.Left(job_ids=()),
    "opened": queue_changes.Opened(keys=()),
    "rules-changed": queue_changes.RulesChanged(),
    "reserve": agreements.Reserve(
        agreement_id=AGREEMENT,
        job_id=JOB,
        vo="",
        owner="alice",
        group="",
        site="glasgow",
        ce="ce01",
        duration_seconds=60.0,
    ),
    "confirm": agreements.Confirm(agreement_id=AGREEMENT, site="glasgow"),
    "cancel": agreements.Cancel(agreement_id=AGREEMENT, site="glasgow"),
    "agreement-decision": agreements.AgreementDecided(
        agreement_id=AGREEMENT,
        job_id=JOB,
        site="glasgow",
        ce="ce01",
        state=AgreementState.DENIED,
        code=AgreementReason.NO_ROOM,
    ),
    "set-share": commands.SetShare(command_id=CommandId("c"), vo="local", owner_group="user"),
    "reset-share": commands.ResetShare(command_id=CommandId("c"), vo="local", owner_group="user"),
    "set-limit": commands.SetLimit(command_id=CommandId("c"), limit=Limit(most=0)),
    "drop-limit": commands.DropLimit(
        command_id=CommandId("c"), kind="waiting", key=CounterKey("", "", "vo", "local")
    ),
    "list-limits": queries.ListLimits(query_id="q"),
    "limit-list": replies.LimitList(query_id="q", client="", limits=(), counts=()),
    "list-shares": queries.ListShares(query_id="q"),
    "rule-site": commands.RuleSite(command_id=CommandId("c"), action="test", site="local"),
    "element-state": events.ElementState(site="local", ce="", at=AT, event="unban", state="healthy"),
    "show-site": queries.ShowSite(query_id="q", site="local"),
    "list-plans": queries.ListPlans(query_id="q"),
    "site-detail": replies.SiteDetail(query_id="q", client="", elements=()),
    "plans": replies.Plans(query_id="q", client="", plans=()),
    "ruled": replies.Ruled(command_id=CommandId("c"), client="", said=""),
    "shares": replies.Shares(query_id="q", client="", shares=()),
    "start-pilots": commands.StartPilots(command_id=CommandId("c")),
    "stop-pilots": commands.StopPilots(command_id=CommandId("c")),
    "list-pilot-orders": queries.ListPilotOrders(query_id="q"),
    "pilot-orders": replies.PilotOrders(query_id="q", client="", orders=()),
    **ranking_examples.MINIMAL,
    **reservation_examples.MINIMAL,
    **access_examples.MINIMAL,
    **dead_letter_examples.MINIMAL,
    **usage_examples.MINIMAL,
    **lease_examples.MINIMAL,
    **overview_examples.MINIMAL,
    **exchange_examples.MINIMAL,
    "database-mark": MARK,
}
"""By tag: only what must be said."""

STAGING = reports.StagingReport(
    job_id=JOB, epoch=EPOCH, part="stage_in", files=3, files_done=1, bytes_done=4_096, bytes_total=8_192
)
JOB_RESULT = replies.JobResult(
    array_index=1,
    parameters={"alpha": "0.5"},
    attempt=2,
    ce="ce1",
    started_at=AT,
    ended_at=AT,
    exit_code=0,
    signal=None,
    cpu_seconds=1.5,
    wall_seconds=2.0,
    max_rss_bytes=1_000,
)
GROWN: dict[str, msgspec.Struct] = {
    "list-jobs.results": queries.ListJobs(**ASKED, selector=SELECTOR, results=True),
    "job-page.results": replies.JobPage(
        **ASKED, jobs=(msgspec.structs.replace(LINE, result=JOB_RESULT),), after=None
    ),
    "job-detail.results": replies.JobDetail(
        **ASKED,
        job=msgspec.structs.replace(LINE, result=JOB_RESULT),
        array_index=None,
        description={},
        attempts=(),
        history=(),
    ),
    **overview_examples.GROWN,
    "peek-job.whole": queries.PeekJob(**ASKED, job_id=JOB, whole=True),
    "job-output.whole": replies.JobOutput(
        **ASKED, job_id=JOB, stream="stdout", offset=9, size=600, text="a", live=False, end=10, whole=True
    ),
    "job-event.group": (
        moved_in_group := events.JobEvent(
            job_id=JOB,
            seq=1,
            at=AT,
            event=Event.KILL,
            state=State.KILLED,
            epoch=Epoch(0),
            owner="bob",
            owner_group="user",
            vo="local",
        )
    ),
    "jobs-moved.group": events.JobsMoved(events=(moved_in_group,)),
    "sites.isolation": replies.Sites(**ASKED, sites=(ISOLATED_LINE,)),
    "sites.stations": replies.Sites(**ASKED, sites=(SAM_LINE,)),
    "site-detail.stations": replies.SiteDetail(**ASKED, elements=(SAM_LINE,)),
    "site-detail.isolation": replies.SiteDetail(**ASKED, elements=(ISOLATED_LINE,)),
    "job-ranking.hosts": msgspec.structs.replace(
        FULL["job-ranking"],
        elements=(
            msgspec.structs.replace(ranking_examples.RANKED, hosts=("se.glasgow.example", "se.oslo.example")),
        ),
    ),
    "peek-job.raw": queries.PeekJob(**ASKED, job_id=JOB, raw=True),
    "job-output.end": replies.JobOutput(
        **ASKED, job_id=JOB, stream="stdout", offset=0, size=600, text="a", live=True, end=1
    ),
    "peek.raw": site_inbox.Peek(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stdout",
        offset=None,
        limit=1,
        asker="bob",
        raw=True,
        **ASKED,
    ),
    "peeked.raw": reports.Peeked(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stdout",
        offset=0,
        size=600,
        text="a",
        asker="bob",
        raw=True,
        end=1,
        **ASKED,
    ),
    "match-request.disk": match_requests.MatchRequest(
        request_id=RequestId("req-10"),
        pilot_id=PILOT,
        resource=Resource(setup="", vo="local", cpu_time=60, disk_mb=120_000),
    ),
    "match-request.seconds": match_requests.MatchRequest(
        request_id=RequestId("req-11"),
        pilot_id=PILOT,
        resource=Resource(setup="", vo="local", cpu_time=60),
        slots=2,
        seconds=1.75,
    ),
    "offer.likely-seconds": site_inbox.Offer(
        pilot_id=PILOT,
        request_id=RequestId("req-11"),
        jobs=(
            site_inbox.OfferedJob(
                job_id=JOB,
                epoch=EPOCH,
                owner="alice",
                owner_group="physics",
                vo="atlas",
                description=msgspec.Raw(b"{}"),
                likely_seconds=0.25,
            ),
        ),
        hold_seconds=10.0,
    ),
    "report.output-positions": reports.Report(
        report_id=ReportId("rep-13"),
        pilot_id=PILOT,
        finish=(
            reports.Result(
                job_id=JOB,
                epoch=EPOCH,
                outcome="done",
                code=Code.DONE,
                stdout_tail="b\n",
                stdout_from=9_000,
                stderr_from=0,
            ),
        ),
    ),
    "report.retries": reports.Report(
        report_id=ReportId("rep-14"),
        pilot_id=PILOT,
        finish=(
            reports.Result(
                job_id=JOB, epoch=EPOCH, outcome="failed", code=Code.EXIT_CODE, exit_code=3, retries=2
            ),
        ),
    ),
    "report.slot-seconds": reports.Report(
        report_id=ReportId("rep-12"),
        pilot_id=PILOT,
        finish=(reports.Result(job_id=JOB, epoch=EPOCH, outcome="done", code=Code.DONE, slot_seconds=12.5),),
    ),
    "advertise.disk": ads.Advertise(
        element=ComputingElement(site="A", ce="a1", slots=8, max_cpu_time=86_400, disk_mb=40_000),
        advertised_at=AT,
        lifetime_seconds=900,
    ),
    "entered.credentials": queue_changes.Entered(
        tq_id=TaskQueueId(7),
        requirements=Requirements(
            owner="alice",
            owner_group="physics",
            vo="atlas",
            setup="default",
            cpu_segment=500,
            min_ram_mb=2_000,
            max_ram_mb=4_000,
            min_disk_mb=10_000,
            certificate_subject="/DC=org/DC=example/CN=Alice",
            fqans=("/atlas/Role=production", "/atlas"),
        ),
        user_priority=1.0,
        job_ids=(JobId(1),),
    ),
    "match-request.node": match_requests.MatchRequest(
        request_id=RequestId("req-9"),
        pilot_id=PILOT,
        resource=Resource(
            setup="",
            vo="local",
            cpu_time=60,
            node=(
                ("gluehostapplicationsoftwareruntimeenvironment", ("avx512", "ATLAS-21")),
                ("gluehostarchitectureplatformtype", "x86_64"),
                ("gluehostmainmemoryramsize", 64_000),
                ("gluehostprocessorclockspeed", 2_400.5),
            ),
        ),
    ),
    "report.node": reports.Report(
        report_id=ReportId("rep-10"),
        pilot_id=PILOT,
        slots=8,
        node=(("gluehostmainmemoryramsize", 64_000), ("gpunumber", 0)),
    ),
    "report.began": reports.Report(
        report_id=ReportId("rep-12"),
        pilot_id=PILOT,
        finish=(
            reports.Result(
                job_id=JOB,
                epoch=EPOCH,
                outcome="lost",
                code=Code.AGENT_ERROR,
                text="the input sandbox cannot be had just now",
                began=False,
            ),
        ),
    ),
    "report.memory": reports.Report(
        report_id=ReportId("rep-11"), pilot_id=PILOT, slots=8, busy=5, free_memory_mb=4_000
    ),
    "sites.jobs-there": replies.Sites(**ASKED, sites=(FULL_LINE,)),
    "site-detail.jobs-there": replies.SiteDetail(**ASKED, elements=(FULL_LINE,)),
    "advertise.observed": ads.Advertise(
        element=ComputingElement(site="glasgow", ce="ce01", slots=64, max_cpu_time=172_800),
        advertised_at=AT,
        observed_at=AT,
    ),
    "sites.state": replies.Sites(**ASKED, sites=(QUARANTINED_LINE,)),
    "ruled.jobs": replies.Ruled(
        command_id=CommandId("c-9"), client="cli-7", said="canaries are out: 1050 at ce01", jobs=(1050,)
    ),
    "advertise.attributes": ads.Advertise(
        element=ComputingElement(site="glasgow", ce="ce01", slots=64, max_cpu_time=172_800),
        advertised_at=AT,
        attributes={
            "GlueCEStateStatus": "Production",
            "GlueCEStateFreeJobSlots": 12,
            "GlueCEPolicyMaxCPUTime": 2_880,
            "GlueHostBenchmarkHEPSPEC06": 10.48,
            "GlueHostNetworkAdapterOutboundIP": True,
            "GlueCEAccessControlBaseRule": ["VO:lhcb", "VO:atlas"],
            "CloseStorageElements": [{"name": "se.example.org", "mount": "/mnt/se"}],
        },
        expressions={"AuthorizationCheck": 'member(strcat("VO:", other.VirtualOrganisation), {"VO:lhcb"})'},
        requirements='other.Owner != "mallory"',
        rank="other.JobPriority",
    ),
    "advertise.rule": ads.Advertise(
        element=ComputingElement(
            site="glasgow",
            ce="ce01",
            slots=64,
            max_cpu_time=172_800,
            max_jobs=40,
            current_jobs=28,
            rule="CurMatches < MaxJobs",
        ),
        advertised_at=AT,
    ),
    "entered.expressions": queue_changes.Entered(
        tq_id=TaskQueueId(6),
        requirements=Requirements(
            owner="alice",
            owner_group="lhcb_user",
            vo="lhcb",
            setup="production",
            cpu_segment=50_000,
            requirements="other.load < 2.0",
            rank="-other.load",
            attributes="[urgency = 7]",
        ),
        user_priority=2.0,
        job_ids=(JOB,),
    ),
    "job-why.rank": replies.JobWhy(
        **ASKED,
        job_id=JOB,
        state="Waiting",
        code="NO_PILOT",
        summary="no pilot runs at the 1 computing element that could run it",
        elements=(replies.CeVerdict(site="glasgow", ce="ce01", fits=True, rank=-0.5),),
    ),
    "job-why.forwarded": replies.JobWhy(
        **ASKED,
        job_id=JOB,
        state="Waiting",
        code="NO_PILOT",
        summary="no pilot runs where it fits",
        elements=(
            replies.CeVerdict(
                site="glasgow",
                ce="ce01",
                fits=True,
                decided=("other.gluecepolicymaxcputime > 60",),
                forwarded=("gluehostmainmemoryramsize >= 8000 as --mem=8000M",),
                on_node=("other.gluehostbenchmarksi00 != 400: != says what a host is not, or reckons",),
            ),
        ),
    ),
    "job-why.avoid": replies.JobWhy(
        **ASKED,
        job_id=JOB,
        state="Waiting",
        code="HELD_BY_LIMIT",
        summary="1 computing element could run it, and a limit holds at each: suppress: 40 of 40 jobs (MaxJobs)",
        elements=(
            replies.CeVerdict(
                site="glasgow",
                ce="ce01",
                fits=True,
                limits=("suppress: 40 of 40 jobs (MaxJobs)",),
                avoid="avoid: 5 of 6 pilots died unseen within the hour",
            ),
        ),
    ),
    "sites.notices": replies.Sites(
        **ASKED,
        sites=(
            replies.SiteLine(
                site="glasgow",
                ce="ce01",
                dispatcher="local",
                advertised_at=AT,
                expires_at=LATER,
                fresh=True,
                ad={"slots": 64},
                pilots=2,
                running_jobs=13,
                notices=("suppress: 40 of 40 jobs (MaxJobs)",),
            ),
        ),
    ),
    "set-share.private-pilots": commands.SetShare(
        command_id=CommandId("c-5"),
        vo="lhcb",
        owner_group="production",
        private_pilots=True,
        client="cli-7",
    ),
    "shares.private-pilots": replies.Shares(
        **ASKED,
        shares=(
            replies.ShareLine(
                vo="lhcb",
                owner_group="production",
                job_share=2000.0,
                job_sharing=True,
                background=False,
                private_pilots=True,
                source="set",
            ),
        ),
    ),
    "pilot-detail.link": replies.PilotDetail(
        **ASKED,
        pilot=msgspec.structs.replace(PILOT_LINE, owner_group="lhcb_user", owner="alice", link="gateway"),
        dispatcher="slurm",
        reference="4711",
        started_at=AT,
        ended_at=LATER,
        word="Failed: node_fail",
        word_at=LATER,
        cause="NODE_LOST",
        output="lost its node\n",
    ),
    "pilot-detail.private": replies.PilotDetail(
        **ASKED,
        pilot=msgspec.structs.replace(PILOT_LINE, owner_group="lhcb_user", owner="alice"),
        dispatcher="slurm",
        reference="4711",
        started_at=AT,
        ended_at=LATER,
        word="Failed: node_fail",
        word_at=LATER,
        cause="NODE_LOST",
        output="lost its node\n",
    ),
    "pilots.private": replies.Pilots(
        **ASKED,
        pilots=(msgspec.structs.replace(PILOT_LINE, owner_group="lhcb_user", owner="alice"),),
    ),
    "pilots.link": replies.Pilots(**ASKED, pilots=(msgspec.structs.replace(PILOT_LINE, link="gateway"),)),
    "shares.usage": replies.Shares(
        **ASKED,
        shares=(
            replies.ShareLine(
                vo="lhcb",
                owner_group="production",
                job_share=2000.0,
                job_sharing=True,
                background=False,
                source="set",
                used_hours=1.5,
                effective_share=900.0,
            ),
        ),
    ),
    "submit.hold": commands.Submit(
        command_id=CommandId("c-1"),
        jobs=(msgspec.Raw(b'{"executable":"date","job_group":"fits"}'),),
        hold=True,
    ),
    "control.group": commands.Control(
        command_id=CommandId("c-2"),
        action="stop_and_hold",
        selector=commands.Selector(job_group="fits", submission="monday", changed_since=AT),
    ),
    "control.changes": commands.Control(
        command_id=CommandId("c-3"),
        action="edit",
        selector=commands.Selector(ids=((7, 7),)),
        changes={"memory_mb": msgspec.Raw(b"4096"), "sites": msgspec.Raw(b'["A","B"]')},
    ),
    "controlled.states": replies.Controlled(
        command_id=CommandId("c-2"),
        client="cli-7",
        changed=0,
        unchanged_total=104_126,
        unchanged_by_state={"Killed": 104_000, "Done": 126},
    ),
    "list-jobs.group": queries.ListJobs(
        **ASKED, selector=commands.Selector(job_group="fits", submission="monday", changed_since=AT)
    ),
    "list-sweeps.group": queries.ListSweeps(**ASKED, job_group="fits", changed_since=AT),
    "count-jobs.reasons": queries.CountJobs(
        **ASKED,
        selector=commands.Selector(job_group="fits", submission="monday", changed_since=AT),
        by_reason=True,
    ),
    "job-counts.reasons": replies.JobCounts(
        **ASKED, counts={"Failed": 3}, reasons={"Failed": {"MEMORY_LIMIT": 2, "EXIT_CODE": 1}}
    ),
    "count-jobs.below": queries.CountJobs(**ASKED, selector=SELECTOR, in_pieces=True, below=4_711),
    "job-counts.from": replies.JobCounts(**ASKED, counts={"Done": 250_000}, counted_from=4_711),
    "job-page.group": replies.JobPage(
        **ASKED, jobs=(msgspec.structs.replace(LINE, job_group="fits"),), after=None
    ),
    "job-detail.group": replies.JobDetail(
        **ASKED,
        job=msgspec.structs.replace(LINE, job_group="fits"),
        array_index=None,
        description={},
        attempts=(),
        history=(),
    ),
    "sweep-page.group": replies.SweepPage(
        **ASKED,
        sweeps=(
            replies.SweepLine(
                first=1042,
                last=1043,
                name="sim-{n}",
                owner="alice",
                owner_group="lhcb_user",
                vo="lhcb",
                counts={"Waiting": 2},
                submitted_at=AT,
                job_group="fits",
            ),
        ),
        after=None,
    ),
    "submit.strict": commands.Submit(
        command_id=CommandId("c-1/rehearsal"), jobs=(msgspec.Raw(b"{}"),), strict=True, rehearsal=True
    ),
    "submitted.foreseen": replies.Submitted(
        command_id=CommandId("c-1"),
        client="cli-7",
        ids=((17, 19),),
        warnings=(
            "NEVER_POSSIBLE: 3 jobs can never run as they are: no computing element known could ever run it",
        ),
        foreseen=(
            replies.Foreseen(
                code="NEVER_POSSIBLE",
                text="no computing element known could ever run it",
                jobs=3,
                relaxations=(
                    replies.Relaxation(
                        clauses=("tags",),
                        changes=("without tag gpu",),
                        slots=64,
                        free_slots=0,
                        elements=1,
                        sites=("glasgow",),
                        sites_total=1,
                    ),
                ),
            ),
        ),
    ),
    "job-detail.reason-text": replies.JobDetail(
        **ASKED,
        job=WAITING_LINE,
        array_index=None,
        description={"executable": "./sim"},
        attempts=(),
        history=(),
        reason_text="no pilot runs at the 1 computing element that could run it",
    ),
    "job-detail.holders": replies.JobDetail(
        **ASKED,
        job=LINE,
        array_index=None,
        description={"executable": "./sim"},
        attempts=(ATTEMPT,),
        history=(HISTORY,),
        holders=(
            replies.HolderLine(
                pilot_id=PILOT,
                site="glasgow",
                ce="ce01",
                dispatcher="slurm",
                reference="4711",
                state="Failed",
                submitted_at=AT,
                started_at=AT,
                seen_at=AT,
                ended_at=LATER,
                reason="node_fail",
                word="Failed: node_fail",
                word_at=LATER,
                cause="NODE_LOST",
            ),
        ),
        lease=replies.LeaseLine(epoch=2, pilot_id=PILOT, phase="accepted", expires_at=LATER),
    ),
    "job-why.tiers": replies.JobWhy(
        **ASKED,
        job_id=JOB,
        state="Waiting",
        code="HELD_BY_LIMIT",
        summary="1 computing element could run it, and a limit holds at each: 10 of 10 run at glasgow",
        advice="it goes on when others of its kind have ended, or when the limit is raised",
        ahead=12,
        elements=(
            replies.CeVerdict(
                site="glasgow",
                ce="ce01",
                fits=True,
                pilots=1,
                free_slots=0,
                fresh=True,
                limits=("10 of 10 run at glasgow",),
                coming=2,
                slots=8,
            ),
        ),
        elements_total=3,
        elements_fitting=1,
        failing={"memory": 2},
        relaxations=(
            replies.Relaxation(
                clauses=("memory",),
                changes=("memory 4000 MB instead of 8000",),
                slots=312,
                free_slots=4,
                elements=2,
                sites=("cern", "ral"),
                sites_total=2,
            ),
        ),
        forecast=replies.Forecast(
            older_least=3,
            older_most=11,
            level_chance=0.75,
            matched_per_minute=4.2,
            earliest_seconds=60.0,
            likely_seconds=150.5,
            latest_seconds=600.0,
        ),
    ),
    "match-request.again": msgspec.structs.replace(FULL["match-request"], again=True),
    "submit.lists": commands.Submit(
        command_id=CommandId("c-1"),
        jobs=(msgspec.Raw(b'{"executable":"date","array":2}'),),
        lists=(commands.LongLists(job=0, parts=(CommandId("c-1/0/0"),)),),
    ),
    "list-jobs.alone": queries.ListJobs(**ASKED, selector=SELECTOR, alone=True),
    "entered.ranges": queue_changes.Entered(
        tq_id=TaskQueueId(5),
        requirements=PLAIN_REQUIREMENTS,
        user_priority=2.0,
        job_ids=(),
        ranges=((1042, 2041), (3000, 3000)),
    ),
    "left.ranges": queue_changes.Left(job_ids=(JOB,), ranges=((1043, 2041),)),
    "job-detail.parameters": replies.JobDetail(
        **ASKED,
        job=WAITING_LINE,
        array_index=7,
        parameters={"file": "f7.txt"},
        description={"executable": "./sim", "arguments": ["{file}"], "array": 100},
        attempts=(),
        history=(),
    ),
    "peek.ticket": site_inbox.Peek(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stdout",
        offset=None,
        limit=1_024,
        asker="alice",
        ticket="dGlja2V0",
        **ASKED,
    ),
    "peeked.ticket": reports.Peeked(
        pilot_id=PILOT,
        job_id=JOB,
        epoch=EPOCH,
        stream="stdout",
        offset=0,
        size=2,
        text="hi",
        asker="alice",
        ticket="dGlja2V0",
        **ASKED,
    ),
    "report.staging": reports.Report(
        report_id=ReportId("rep-9"),
        pilot_id=PILOT,
        staging=(STAGING,),
        finish=(
            reports.Result(
                job_id=JOB,
                epoch=EPOCH,
                outcome="done",
                code=Code.DONE,
                transfers=(
                    reports.HostTransfer(
                        part="stage_in", host="se1.example.org", files=2, size=4_096, seconds=1.5
                    ),
                ),
            ),
        ),
    ),
    "report.usage": reports.Report(
        report_id=ReportId("rep-9"),
        pilot_id=PILOT,
        usage=(reports.UsageOverTime(job_id=JOB, epoch=EPOCH, points=POINTS),),
    ),
    "job-detail.usage": replies.JobDetail(
        **ASKED,
        job=WAITING_LINE,
        array_index=None,
        parameters={},
        description={"executable": "./sim"},
        attempts=(msgspec.structs.replace(OFFERED_ATTEMPT, usage_points=POINTS),),
        history=(),
    ),
    "job-detail.staging": replies.JobDetail(
        **ASKED,
        job=WAITING_LINE,
        array_index=None,
        parameters={},
        description={"executable": "./sim"},
        attempts=(),
        history=(),
        lease=replies.LeaseLine(
            epoch=EPOCH, pilot_id=PILOT, phase="accepted", expires_at=LATER, staging=STAGING
        ),
    ),
    "report.refused-orders": reports.Report(report_id=ReportId("rep-9"), pilot_id=PILOT, refused_orders=3),
    "report.isolation": reports.Report(report_id=ReportId("rep-12"), pilot_id=PILOT, isolation="namespaces"),
    "pilot-detail.isolation": replies.PilotDetail(
        **ASKED,
        pilot=PILOT_LINE,
        dispatcher="slurm",
        reference=None,
        started_at=None,
        ended_at=None,
        word=None,
        word_at=None,
        cause=None,
        output=None,
        isolation="none",
    ),
    "job-why.isolation": replies.JobWhy(
        **ASKED, job_id=JOB, state="Running", code="STARTED", summary="Running", isolation="namespaces"
    ),
    "pilot-detail.refused-orders": replies.PilotDetail(
        **ASKED,
        pilot=PILOT_LINE,
        dispatcher="slurm",
        reference=None,
        started_at=None,
        ended_at=None,
        word=None,
        word_at=None,
        cause=None,
        output=None,
        refused_orders=3,
    ),
    "offer.parameters": site_inbox.Offer(
        **OFFERED_TO,
        jobs=(
            site_inbox.OfferedJob(
                job_id=JOB,
                epoch=EPOCH,
                owner="alice",
                owner_group="lhcb_user",
                vo="lhcb",
                description=DESCRIPTION,
                array_index=7,
                parameters={"file": "f7.txt"},
            ),
        ),
        hold_seconds=30.0,
    ),
    "list-queues.page": queries.ListQueues(**ASKED, after=50, limit=200),
    "list-sites.page": queries.ListSites(**ASKED, after=50, limit=200),
    "list-pilots.page": queries.ListPilots(**ASKED, after=50, limit=200),
    "list-plans.page": queries.ListPlans(**ASKED, after=50, limit=200),
    "list-shares.page": queries.ListShares(**ASKED, after=50, limit=200),
    "list-limits.page": queries.ListLimits(**ASKED, after=50, limit=200),
    "queues.page": replies.Queues(**ASKED, queues=(), after=250),
    "sites.page": replies.Sites(**ASKED, sites=(), after=250),
    "pilots.page": replies.Pilots(**ASKED, pilots=(), after=250),
    "plans.page": replies.Plans(**ASKED, plans=(), after=250),
    "shares.page": replies.Shares(**ASKED, shares=(), after=250),
    "limit-list.page": replies.LimitList(**ASKED, limits=(), counts=(), after=250),
}
"""By file name without `.json`, `<tag>.<what is new>`: messages with fields that came after the tag's first file."""

UNIONS: dict[str, Any] = {
    "wms.job.commands": commands.Command,
    "wms.job.queries": queries.Asked,
    "wms.user.owner.inbox": replies.Reply,
    "wms.resource.ads": ads.AdvertiserMessage,
    "wms.match.requests": match_requests.Request,
    "wms.site.site.inbox": site_inbox.ToAgent,
    "wms.job.reports": reports.FromAgent,
    "wms.job.events": events.Fact,
    "wms.queue.changes": queue_changes.Change,
    "wms.broker.jobs": broker.ToBroker,
    "wms.broker.placements": broker.PlacementsOrdered,
    "wms.agreement.offers": agreements.ToSite,
    "wms.agreement.decisions": agreements.AgreementDecided,
    "wms.pilot.exchanges": pilot_exchange.SecretExchange,
    "wms.pilot.credentials": pilot_exchange.ExchangeAnswer,
    "wms.database.marks": database_marks.DatabaseMark,
}
"""By topic; the names are those of the schemas in `docs/schema/`."""


def kinds(union: Any) -> tuple[type[msgspec.Struct], ...]:
    return get_args(union) or (union,)


def topic_of(tag: str) -> str:
    return next(
        topic
        for topic, union in UNIONS.items()
        if tag in {kind.__struct_config__.tag for kind in kinds(union)}
    )
