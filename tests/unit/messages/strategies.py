"""Messages for tests, of every shape that the wire takes."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st

from wms.ids import Epoch, JobId, PilotId, ReportId
from wms.job.reasons import Code
from wms.messages.reports import Report, Result, Usage
from wms.messages.wire import Codec, encode


def report(**usage: Any) -> bytes:
    result = {"job_id": 1, "epoch": 1, "outcome": "done", "code": "DONE", **usage}
    return json.dumps({"type": "report", "report_id": "r", "pilot_id": "p", "finish": [result]}).encode()


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60).filter(str.isprintable)


words = st.just("") | names


numbers = st.integers(1, 2**60)


held = st.tuples(numbers.map(JobId), st.integers(0, 2**31 - 1).map(Epoch))


helds = st.lists(held, max_size=5).map(tuple)


amounts = st.floats(0, 1e11)


usages = st.builds(
    Usage,
    cpu_user_seconds=amounts,
    cpu_system_seconds=amounts,
    wall_seconds=amounts,
    max_rss_bytes=numbers,
    disk_bytes=numbers,
)


results = st.builds(
    Result,
    job_id=numbers.map(JobId),
    epoch=st.integers(0, 2**31 - 1).map(Epoch),
    outcome=st.sampled_from(["done", "failed", "killed", "lost"]),
    code=st.sampled_from(Code),
    text=words,
    exit_code=st.none() | st.integers(-128, 255),
    signal=st.none() | st.integers(1, 64),
    started_at=st.none() | st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC)),
    usage=usages,
    output_sha256=st.none() | st.from_regex(r"[0-9a-f]{64}", fullmatch=True),
    output_bytes=numbers,
    stdout_tail=texts,
    stderr_tail=texts,
)


reports = st.builds(
    Report,
    report_id=names.map(ReportId),
    pilot_id=names.map(PilotId),
    decline=helds,
    accept=helds,
    start=helds,
    renew=helds,
    finish=st.lists(results, max_size=3).map(tuple),
    state=st.sampled_from(["running", "draining", "ended"]),
    slots=st.integers(0, 100_000),
    busy=st.integers(0, 100_000),
    reason=words,
)


raws = st.dictionaries(texts, texts | st.integers(-(2**53), 2**53) | st.booleans(), max_size=4).map(
    lambda document: msgspec.Raw(msgspec.json.encode(document))
)


def returns(union: Any, message: msgspec.Struct) -> None:
    codec: Codec[Any] = Codec(union)
    payload = encode(message)
    assert encode(codec.decode(payload)) == payload
    assert json.loads(payload)["type"] == message.__struct_config__.tag
