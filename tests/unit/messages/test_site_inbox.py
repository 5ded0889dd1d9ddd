"""Messages to the agents of a site, on the wire."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.messages.strategies import amounts, helds, names, numbers, raws, returns, words
from wms.ids import Epoch, JobId, PilotId, ReportId, RequestId
from wms.messages.site_inbox import Answer, Offer, OfferedJob, ToAgent
from wms.messages.wire import Codec, encode

offers = st.builds(
    Offer,
    pilot_id=names.map(PilotId),
    request_id=names.map(RequestId),
    jobs=st.lists(
        st.builds(
            OfferedJob,
            job_id=numbers.map(JobId),
            epoch=st.integers(0, 2**31 - 1).map(Epoch),
            owner=words,
            owner_group=words,
            vo=words,
            description=raws,
            array_index=st.none() | st.integers(0, 10**6),
        ),
        max_size=4,
    ).map(tuple),
    hold_seconds=amounts,
)


answers = st.builds(
    Answer,
    pilot_id=names.map(PilotId),
    report_id=names.map(ReportId),
    granted=helds,
    lost=helds,
    kill=helds,
    recorded=helds,
    lease_seconds=amounts,
    drain=st.booleans(),
)


@settings(deadline=None)
@given(offers)
def test_offers_come_back_as_they_were(offer: Offer) -> None:
    returns(ToAgent, offer)


@settings(deadline=None)
@given(answers)
def test_answers_come_back_as_they_were(answer: Answer) -> None:
    returns(ToAgent, answer)
    assert Codec[Answer](ToAgent).decode(encode(answer)) == answer
