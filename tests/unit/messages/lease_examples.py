"""Examples of messages about leases."""

from typing import Any

import msgspec

from wms.ids import Epoch
from wms.messages import queries, replies

ASKED: dict[str, Any] = {"query_id": "q-1", "client": "cli-7"}

FULL: dict[str, msgspec.Struct] = {
    "show-lease": queries.ShowLease(**ASKED, job_id=1042, epoch=Epoch(2)),
    "held-lease": replies.HeldLease(
        **ASKED,
        job_id=1042,
        epoch=Epoch(2),
        inputs=("ab" * 32,),
    ),
}
MINIMAL: dict[str, msgspec.Struct] = {
    "show-lease": queries.ShowLease(query_id="q", job_id=1, epoch=Epoch(1)),
    "held-lease": replies.HeldLease(query_id="q", client="", job_id=1, epoch=Epoch(1)),
}
