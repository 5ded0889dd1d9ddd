"""Routes."""

from services.gateway.routes import ROUTES
from wms.messages import commands, queries


def test_what_changes_nothing_is_a_query() -> None:
    assert {each.topic for each in ROUTES if each.method == "GET"} == {queries.TOPIC}
    assert {each.topic for each in ROUTES if each.method != "GET"} == {commands.TOPIC}
