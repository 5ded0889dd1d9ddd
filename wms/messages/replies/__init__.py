"""The topics `wms.user.<owner>.inbox`: answers to one user's clients. Key: the client; a client ignores answers to others.

Answers to queries that a gateway sends for users have one topic, `wms.gateway.inbox`, which all gateways read. There the key names
the owner too.
"""

from wms.messages.replies.access import AuditLine, AuditTrail, RevocationLine, RevocationList, WhoYouAre
from wms.messages.replies.commands import Controlled, Refused, Ruled, Submitted, Unchanged, ValuesKept
from wms.messages.replies.dead_letters import DeadLetterDetail, DeadLetterLine, DeadLetters, LetterSender
from wms.messages.replies.explanations import CeVerdict, Forecast, Foreseen, JobWhy, Relaxation
from wms.messages.replies.inboxes import GATEWAY_CLIENT, GATEWAY_INBOX, INBOX_PREFIX, address, inbox
from wms.messages.replies.jobs import (
    Attempt,
    HeldLease,
    HistoryLine,
    HolderLine,
    JobCounts,
    JobDetail,
    JobLine,
    JobOutput,
    JobPage,
    JobResult,
    LeaseLine,
    SweepLine,
    SweepPage,
)
from wms.messages.replies.overview import (
    OutcomeLine,
    Overview,
    PilotEndLine,
    Progress,
    ProgressLine,
    ServiceLine,
    WaitLine,
)
from wms.messages.replies.pilots import PilotDetail, PilotLine, PilotOrderLine, PilotOrders, Pilots
from wms.messages.replies.queues import QueueLine, Queues
from wms.messages.replies.rankings import (
    AgreementLine,
    CalibrationLine,
    Calibrations,
    JobRanking,
    PlacementLine,
    PredictedPart,
    RankedElement,
)
from wms.messages.replies.reservations import ReservationLine, Reservations
from wms.messages.replies.rules import CountLine, LimitLine, LimitList, ShareLine, Shares
from wms.messages.replies.sites import (
    CanaryLine,
    Decision,
    JobsThere,
    PlanLine,
    Plans,
    Share,
    SiteDetail,
    SiteLine,
    SiteMove,
    Sites,
)
from wms.messages.replies.usage import UsageLine, UsageReport, WasteLine

Reply = (
    Submitted
    | ValuesKept
    | Refused
    | Controlled
    | JobPage
    | SweepPage
    | JobCounts
    | JobDetail
    | JobWhy
    | JobOutput
    | Queues
    | Sites
    | Pilots
    | PilotDetail
    | Ruled
    | Shares
    | LimitList
    | SiteDetail
    | Plans
    | PilotOrders
    | JobRanking
    | Calibrations
    | Reservations
    | WhoYouAre
    | AuditTrail
    | RevocationList
    | UsageReport
    | HeldLease
    | Overview
    | Progress
    | DeadLetters
    | DeadLetterDetail
)

__all__ = [
    "GATEWAY_CLIENT",
    "GATEWAY_INBOX",
    "INBOX_PREFIX",
    "AgreementLine",
    "Attempt",
    "AuditLine",
    "AuditTrail",
    "CalibrationLine",
    "Calibrations",
    "CanaryLine",
    "CeVerdict",
    "Controlled",
    "CountLine",
    "DeadLetterDetail",
    "DeadLetterLine",
    "DeadLetters",
    "Decision",
    "Forecast",
    "Foreseen",
    "HeldLease",
    "HistoryLine",
    "HolderLine",
    "JobCounts",
    "JobDetail",
    "JobLine",
    "JobOutput",
    "JobPage",
    "JobRanking",
    "JobResult",
    "JobWhy",
    "JobsThere",
    "LeaseLine",
    "LetterSender",
    "LimitLine",
    "LimitList",
    "OutcomeLine",
    "Overview",
    "PilotDetail",
    "PilotEndLine",
    "PilotLine",
    "PilotOrderLine",
    "PilotOrders",
    "Pilots",
    "PlacementLine",
    "PlanLine",
    "Plans",
    "PredictedPart",
    "Progress",
    "ProgressLine",
    "QueueLine",
    "Queues",
    "RankedElement",
    "Refused",
    "Relaxation",
    "Reply",
    "ReservationLine",
    "Reservations",
    "RevocationLine",
    "RevocationList",
    "Ruled",
    "ServiceLine",
    "Share",
    "ShareLine",
    "Shares",
    "SiteDetail",
    "SiteLine",
    "SiteMove",
    "Sites",
    "Submitted",
    "SweepLine",
    "SweepPage",
    "Unchanged",
    "UsageLine",
    "UsageReport",
    "ValuesKept",
    "WaitLine",
    "WasteLine",
    "WhoYouAre",
    "address",
    "inbox",
]
