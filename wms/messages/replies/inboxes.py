"""The Kafka topic and the key of each answer."""

from typing import Final

from wms.ids import slug

INBOX_PREFIX: Final = "wms.user."
GATEWAY_INBOX: Final = "wms.gateway.inbox"
GATEWAY_CLIENT: Final = "gateway."
"""The prefix of the ids of clients whose answers go to the topic of the gateways."""


def inbox(owner: str) -> str:
    """Return the name of the Kafka topic with the answers to a user. `owner` must come from the verified token."""
    return f"{INBOX_PREFIX}{slug(owner)}.inbox"


def address(owner: str, client: str) -> tuple[str, str]:
    """Return the topic and the key of an answer to a user's client. `owner` must come from the verified token.

    The key of an answer through a gateway names the owner, so that no answer to one owner can be taken for another's.
    """
    if client.startswith(GATEWAY_CLIENT):
        return GATEWAY_INBOX, f"{slug(owner)}/{client}"
    return inbox(owner), client
