"""Reports of agents on the wire."""

from hypothesis import given, settings

from tests.unit.messages.strategies import reports, returns
from wms.messages.reports import FromAgent, Report
from wms.messages.wire import Codec, encode


@settings(deadline=None)
@given(reports)
def test_reports_come_back_as_they_were(report: Report) -> None:
    returns(FromAgent, report)
    assert Codec[FromAgent](FromAgent).decode(encode(report)) == report
