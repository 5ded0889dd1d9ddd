"""What cannot be read is Rejected, whatever it is; what can be read comes back as it was."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.messages.examples import FULL, MINIMAL, UNIONS, topic_of
from tests.unit.messages.strategies import report, returns
from wms.errors import Rejected
from wms.ids import CommandId
from wms.messages.commands import Submit
from wms.messages.wire import PAYLOAD_LIMIT, Codec, encode

CODECS: dict[str, Codec[Any]] = {topic: Codec(union) for topic, union in UNIONS.items()}


KILL = b'{"type":"control","command_id":"c","action":"kill","selector":{}}'


def codec_of(tag: str) -> Codec[Any]:
    return CODECS[topic_of(tag)]


def refusal(payload: bytes, topic: str = "wms.job.commands") -> Rejected:
    with pytest.raises(Rejected) as caught:
        CODECS[topic].decode(payload)
    assert str(caught.value).isprintable() or "\n" in str(caught.value)
    return caught.value


def control(**changes: Any) -> bytes:
    return json.dumps({**json.loads(KILL), **changes}).encode()


def test_the_example_is_right_before_it_is_spoilt() -> None:
    assert CODECS["wms.job.commands"].decode(KILL)
    assert CODECS["wms.job.commands"].decode(control())


SPOILT = {
    "nothing": b"",
    "blank": b" \n",
    "no JSON": b"kill 7",
    "a number": b"7",
    "null": b"null",
    "a list": b"[" + KILL + b"]",
    "two documents": KILL + KILL,
    "truncated": KILL[:-1],
    "truncated in a text": KILL[:30],
    "not UTF-8 in a value": KILL.replace(b'"c"', b'"\xff\xfe"'),
    "not UTF-8 in a key": KILL.replace(b'"command_id"', b'"command_id\xe9"'),
    "overlong UTF-8": KILL.replace(b'"c"', b'"\xc0\xaf"'),
    "UTF-16": KILL.decode().encode("utf-16"),
    "compressed": b"\x1f\x8b\x08\x00" + KILL,
    "a raw line feed in a text": KILL.replace(b'"c"', b'"a\nb"'),
    "a lone surrogate": KILL.replace(b'"c"', b'"\\ud800"'),
    "NaN": control(reason=float("nan")),
    "infinity": control(reason=float("inf")),
    "an unknown tag": control(type="destroy"),
    "another topic's tag": control(type="report"),
    "no tag": b'{"command_id":"c","action":"kill","selector":{}}',
    "a tag of the wrong type": control(type=7),
    "a wrong type": control(command_id=7),
    "a wrong type deep inside": control(selector={"ids": [[1, "9"]]}),
    "too short a pair": control(selector={"ids": [[1]]}),
    "an unknown action": control(action="explode"),
    "an unknown state": control(selector={"states": ["Sleeping"]}),
    "an empty id": control(command_id=""),
    "too long an id": control(command_id="c" * 201),
    "too many ranges": control(selector={"ids": [[1, 2]] * 1_001}),
    "a required field is null": control(selector=None),
}


def ad(**changes: Any) -> bytes:
    said = json.loads(encode(MINIMAL["advertise"]))
    return json.dumps({**said, "element": {**said["element"], **changes}}).encode()


BEYOND = {
    "an ad of 2^70 seconds": ("wms.resource.ads", ad(max_cpu_time=2**70)),
    "an ad of 2^63 slots": ("wms.resource.ads", ad(slots=2**63)),
    "an ad of less than no memory": ("wms.resource.ads", ad(memory_mb=-1)),
    "an element named with an escape sequence": ("wms.resource.ads", ad(ce="ce\x1b[2J")),
    "a site named with a C1 control": ("wms.resource.ads", ad(site="glasgow\x9b2J")),
    "a site named with DEL": ("wms.resource.ads", ad(site="glasgow\x7f")),
    "an expression with a NUL": ("wms.resource.ads", ad(rule="true\x00")),
    "the year 1 of another zone": (
        "wms.resource.ads",
        b'{"type":"withdraw","site":"a","ce":"b","advertised_at":"0001-01-01T00:00:00+23:59"}',
    ),
    "the year 9999": (
        "wms.resource.ads",
        b'{"type":"withdraw","site":"a","ce":"b","advertised_at":"9999-12-31T23:59:59-23:59"}',
    ),
    "an id of 2^63": ("wms.job.commands", control(selector={"ids": [[1, 2**63]]})),
    "an id below none": ("wms.job.commands", control(selector={"ids": [[-(2**63), 1]]})),
    "a reversed range": ("wms.job.commands", control(selector={"ids": [[1, 2], [9, 3]]})),
    "a reason with a NUL": ("wms.job.commands", control(reason="\x00")),
    "a job's name with an escape sequence": ("wms.job.commands", control(selector={"name": "\x1b]0;x\x07"})),
    "one part for two descriptions": (
        "wms.job.commands",
        b'{"type":"submit","command_id":"c","jobs":[{},{}],"lists":[[0,["p"]],[1,["p"]]]}'.replace(
            b'[0,["p"]]', b'{"job":0,"parts":["p"]}'
        ).replace(b'[1,["p"]]', b'{"job":1,"parts":["p"]}'),
    ),
    "a job of 2^63": ("wms.job.queries", b'{"type":"show-job","query_id":"q","job_id":9223372036854775808}'),
    "a usage of 1e308 s": ("wms.job.reports", report(usage={"cpu_user_seconds": 1e308})),
    "an epoch of 2^31": ("wms.job.reports", report(epoch=2**31)),
    "an exit code of 2^40": ("wms.job.reports", report(exit_code=2**40)),
}


@pytest.mark.parametrize("what", BEYOND)
def test_what_is_beyond_its_bound_is_refused_with_its_place(what: str) -> None:
    topic, payload = BEYOND[what]
    refused = refusal(payload, topic)
    assert refused.code == "MESSAGE_INVALID"
    assert "`$" in refused.message
    assert refused.remedy


@pytest.mark.parametrize("text", ["C:\\\\u0000", "größer", "a\ttab and a\nline", "\x1b[31m"])
def test_texts_that_are_no_names_may_have_any_character_but_nul(text: str) -> None:
    assert CODECS["wms.job.reports"].decode(report(stdout_tail=text)).finish[0].stdout_tail == text


def test_a_reason_is_one_safe_line_whoever_sent_it() -> None:
    hostile = "killed\n\x1b[2Jby gnp.\u202enim"
    safe = "killed \\x1b[2Jby gnp.\\u202enim"
    assert CODECS["wms.job.commands"].decode(control(reason=hostile)).reason == safe
    read = CODECS["wms.job.reports"].decode(report(text=hostile))
    assert read.finish[0].text == safe


def test_what_is_within_every_bound_is_read() -> None:
    assert CODECS["wms.resource.ads"].decode(ad(ce="ce01-größe", max_cpu_time=10**12))
    assert CODECS["wms.job.commands"].decode(control(selector={"ids": [[7, 7], [0, 2**62]]}))
    assert CODECS["wms.job.reports"].decode(report(usage={"cpu_user_seconds": 1e11}, exit_code=-9))


@pytest.mark.parametrize("what", SPOILT)
def test_what_cannot_be_read_is_refused(what: str) -> None:
    assert refusal(SPOILT[what]).code == "MESSAGE_INVALID"


def test_the_refusal_names_the_place() -> None:
    assert "$.selector.ids[0][1]" in refusal(SPOILT["a wrong type deep inside"]).message
    assert "destroy" in refusal(SPOILT["an unknown tag"]).message


@pytest.mark.parametrize("size", [PAYLOAD_LIMIT + 1, 100_000_000])
def test_an_oversized_message_is_refused_unread(size: int) -> None:
    payload = b'"' + b"x" * (size - 2) + b'"'
    assert refusal(payload).code == "MESSAGE_TOO_LARGE"


def test_the_largest_message_is_read() -> None:
    payload = KILL[:-1] + b" " * (PAYLOAD_LIMIT - len(KILL)) + b"}"
    assert len(payload) == PAYLOAD_LIMIT
    assert CODECS["wms.job.commands"].decode(payload)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"type":"control","selector":'])
@pytest.mark.parametrize("depth", [1_500, PAYLOAD_LIMIT // 40])
def test_deep_nesting_is_refused(opening: bytes, depth: int) -> None:
    assert refusal(opening * depth).code == "MESSAGE_INVALID"


def test_deep_nesting_in_what_is_passed_over_is_refused() -> None:
    depth = 100_000
    payload = KILL[:-1] + b',"unknown":' + b"[" * depth + b"]" * depth + b"}"
    assert refusal(payload).code == "MESSAGE_INVALID"


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5_000, "NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_none_are_refused(number: str) -> None:
    ad = msgspec.json.encode(FULL["advertise"]).replace(b'"lifetime_seconds":180.0', b'"lifetime_seconds":@')
    assert refusal(ad.replace(b"@", number.encode()), "wms.resource.ads").code == "MESSAGE_INVALID"


def test_a_wrong_time_is_refused() -> None:
    for said in ("yesterday", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", ""):
        payload = json.dumps({"type": "withdraw", "site": "a", "ce": "b", "advertised_at": said})
        assert refusal(payload.encode(), "wms.resource.ads").code == "MESSAGE_INVALID"


def test_too_large_a_message_is_refused_to_its_sender() -> None:
    big = Submit(command_id=CommandId("c"), jobs=(msgspec.Raw(b'"' + b"x" * PAYLOAD_LIMIT + b'"'),))
    with pytest.raises(Rejected) as caught:
        encode(big)
    assert caught.value.code == "MESSAGE_TOO_LARGE"
    assert caught.value.remedy


@pytest.mark.parametrize("tag", sorted(FULL))
def test_every_truncation_is_refused(tag: str) -> None:
    payload = encode(FULL[tag])
    for length in range(0, len(payload), max(1, len(payload) // 60)):
        with pytest.raises(Rejected):
            codec_of(tag).decode(payload[:length])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(sorted(UNIONS)))
def test_noise_is_refused(noise: bytes, topic: str) -> None:
    with pytest.raises(Rejected):
        CODECS[topic].decode(noise)


EXTREME: list[Any] = [
    2**31, 2**63, -(2**63) - 1, 2**70, 1e308, -1e308, 5e-324, "\x00", "\x1b[2J", "\x9b", "\ud800", "x" * 300_000, [[2, 1]],
    [[1, 2]] * 2_000, "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", {"x": {"x": [{}] * 2_000}},
]  # fmt: skip


anything = st.recursive(
    st.sampled_from(EXTREME) | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_message_with_one_value_replaced_is_read_or_refused(data: st.DataObject) -> None:
    """Nothing but Rejected ever comes of a strange value in any place."""
    tag = data.draw(st.sampled_from(sorted(FULL)))
    document = json.loads(encode(FULL[tag]))
    spoil(data, document)
    try:
        message = codec_of(tag).decode(json.dumps(document).encode("utf-8", "surrogatepass"))
    except Rejected:
        return
    assert codec_of(tag).decode(encode(message)) == message


def spoil(data: st.DataObject, document: Any) -> None:
    """Replace one value, at whatever depth the draw leads to."""
    here = document
    while True:
        places = list(here) if isinstance(here, dict) else range(len(here))
        if not places:
            return
        place = data.draw(st.sampled_from(list(places)))
        inner = here[place]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            here[place] = data.draw(anything)
            return
        here = inner


@pytest.mark.parametrize("tag", sorted(MINIMAL))
def test_defaults_said_or_unsaid_are_the_same(tag: str) -> None:
    returns(UNIONS[topic_of(tag)], MINIMAL[tag])
