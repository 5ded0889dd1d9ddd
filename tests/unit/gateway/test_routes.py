"""The table of all operations."""

import re

import msgspec
import pytest

from services.gateway.openapi import name_of
from services.gateway.route import Route
from services.gateway.routes import OPERATIONS, ROUTES
from wms.messages import commands, queries, replies

WITHOUT_ROUTE = {
    queries.ShowLease: "of pilots and payloads, for files of attempts",
    commands.Submit: "sent by the operation that submits jobs",
    commands.AddChunks: "sent before a submission with long lists",
}
"""Messages that have no route, and why."""


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_each_parameter_in_a_path_is_one_of_the_struct(route: Route) -> None:
    assert route.in_path <= set(route.parameters.__struct_fields__)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_each_route_is_answered_by_a_reply_of_a_service(route: Route) -> None:
    assert (route.reply or route.answer) in replies.Reply.__args__


def test_no_request_of_two_paths_is_ambiguous() -> None:
    """A path without parameters stands before one that would take it, since the first that fits is served."""
    paths = list(dict.fromkeys(each.path for each in OPERATIONS))
    for n, path in enumerate(paths):
        pattern = re.sub(r"{\w+}", "[^/]+", path)
        assert not [later for later in paths[n + 1 :] if re.fullmatch(pattern, later)]


def test_parameters_are_single_values() -> None:
    for operation in OPERATIONS:
        for field in msgspec.structs.fields(operation.parameters):
            assert not isinstance(msgspec.inspect.type_info(field.type), msgspec.inspect.CollectionType)


def test_each_message_of_the_clients_protocol_has_a_route() -> None:
    """What `wms.client` can do, REST can: a new query or command needs a route, or a reason to have none."""
    used = {name for each in ROUTES for name in each.message.__code__.co_names}
    known = {each.__name__ for union in (queries.Asked, commands.Command) for each in union.__args__}
    assert known - used == {each.__name__ for each in WITHOUT_ROUTE}
