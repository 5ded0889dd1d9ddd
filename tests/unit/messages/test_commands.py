"""Commands on the wire."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.messages.strategies import names, raws, returns, words
from wms.ids import CommandId
from wms.messages.commands import Command, Submit
from wms.messages.wire import Codec, encode

submits = st.builds(
    Submit,
    command_id=names.map(CommandId),
    jobs=st.lists(raws, min_size=1, max_size=5).map(tuple),
    client=words,
)


@settings(deadline=None)
@given(submits)
def test_submits_come_back_as_they_were(submit: Submit) -> None:
    returns(Command, submit)
    read = Codec[Submit](Command).decode(encode(submit))
    assert [bytes(raw) for raw in read.jobs] == [bytes(raw) for raw in submit.jobs]
