"""Where answers go."""

from hypothesis import given
from hypothesis import strategies as st

from wms.messages.replies.inboxes import GATEWAY_CLIENT, GATEWAY_INBOX, address, inbox


def test_an_answer_to_a_users_own_tool_goes_to_the_users_inbox() -> None:
    assert address("alice", "abc") == (inbox("alice"), "abc") == ("wms.user.alice.inbox", "abc")


def test_one_through_a_gateway_goes_to_all_gateways_under_its_owner() -> None:
    assert address("alice", f"{GATEWAY_CLIENT}abc") == (GATEWAY_INBOX, "alice/gateway.abc")


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_no_two_owners_share_a_key(one: str, other: str, client: str, guessed: str) -> None:
    mine, others = address(one, GATEWAY_CLIENT + client), address(other, GATEWAY_CLIENT + guessed)
    assert (mine == others) == ((one, client) == (other, guessed))
