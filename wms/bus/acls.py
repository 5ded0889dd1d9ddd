"""The access rules (ACLs) of a Kafka cluster: which topics services, users' tools, advertisers and pilots may write and read.

`wms kafka-acls` writes these rules to a cluster. All services share one set of rules, because each may publish what another left in the outbox. A
rule names topics, or prefixes of topics' names.
"""

import asyncio
import shlex
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from aiokafka.protocol.admin import CreateAclsRequest

from wms.bus.connection_settings import KafkaSettings
from wms.errors import Rejected, Unavailable
from wms.messages import ads, commands, events, match_requests, queries, replies, reports, site_inbox

Operation = Literal["Create", "Read", "Write"]

TOPIC_PREFIX: Final = "wms."
"""The prefix of the names of all topics of this system."""
WRITTEN_WITHIN_SECONDS: Final = 20.0
TOPIC, LITERAL, PREFIXED, ALLOW = 2, 3, 4, 3
OPERATIONS: Final[dict[Operation, int]] = {"Read": 3, "Write": 4, "Create": 5}
"""The code of each operation in Kafka's protocol."""
EVERY_HOST: Final = "*"
INBOX: Final[tuple[Operation, ...]] = ("Create", "Read")
"""What the reader of an inbox may do with its topic: create and read it. Only services write there."""


class AccessRule(NamedTuple):
    """An access rule: clients that connect as `principal` may do these operations on these topics."""

    principal: str
    """The name by which the Kafka broker knows who connects, such as `User:alice` or `User:CN=alice,O=example`."""
    operations: tuple[Operation, ...]
    topics: tuple[str, ...]
    is_prefix: bool = False
    """Whether `topics` are prefixes of topics' names, rather than whole names."""

    def arguments(self) -> list[str]:
        """Return the arguments by which the tool `kafka-acls` adds this rule."""
        operations = [word for each in self.operations for word in ("--operation", each)]
        topics = [word for each in self.topics for word in ("--topic", each)]
        pattern = ["--resource-pattern-type", "prefixed" if self.is_prefix else "literal"]
        return ["--add", "--allow-principal", self.principal, *operations, *topics, *pattern]


def of_services(principal: str) -> list[AccessRule]:
    """Return the access rules for the services, which connect as `principal`."""
    return [AccessRule(principal, ("Create", "Read", "Write"), (TOPIC_PREFIX,), is_prefix=True)]


def of_user(principal: str, owner: str) -> list[AccessRule]:
    """Return the access rules for one user's tools, which connect as `principal`. `owner` is the name in the user's tokens."""
    return [
        AccessRule(principal, ("Write",), (commands.TOPIC, queries.TOPIC)),
        AccessRule(principal, INBOX, (replies.inbox(owner),)),
        AccessRule(principal, ("Read",), (events.TOPIC,)),
    ]


def of_advertiser(principal: str) -> list[AccessRule]:
    """Return the access rules for an advertiser, which connects as `principal`. Its token says for which sites it may publish ads."""
    return [AccessRule(principal, ("Write",), (ads.TOPIC,))]


def of_pilots(principal: str, site: str) -> list[AccessRule]:
    """Return the access rules for the pilots of a site, which connect as `principal`. `site` is the name of the site."""
    return [
        AccessRule(principal, ("Write",), (match_requests.TOPIC, reports.TOPIC)),
        AccessRule(principal, INBOX, (site_inbox.inbox(site),)),
    ]


def script(rules: Iterable[AccessRule], tool: Sequence[str]) -> str:
    """Return a shell script that adds these rules. `tool` is the command that calls `kafka-acls` for the cluster."""
    return "".join(shlex.join([*tool, *each.arguments()]) + "\n" for each in rules)


async def write_rules(settings: KafkaSettings, rules: Iterable[AccessRule]) -> None:
    """Add these access rules to the cluster. `settings` must hold the credentials of a cluster administrator. Rules that exist already stay.

    Raise Unavailable if the cluster does not answer. Raise Rejected if it refuses a rule: it has no authorizer, or the client is no administrator.
    """
    client = AIOKafkaClient(**settings.connection(), client_id="wms-kafka-acls")
    try:
        async with asyncio.timeout(WRITTEN_WITHIN_SECONDS):
            await client.bootstrap()
            for request in [one for each in rules for one in _requests(each)]:
                # Any node passes it on to the controller.
                answer = await client.send(client.get_random_node(), request)
                _check(answer.creation_responses)
    except (KafkaError, OSError) as error:
        raise Unavailable(f"the rules were not added: {error!r}") from error
    finally:
        await client.close()


def _requests(rule: AccessRule) -> Iterable[CreateAclsRequest]:
    pattern = PREFIXED if rule.is_prefix else LITERAL
    for topic in rule.topics:
        for each in rule.operations:
            yield CreateAclsRequest(
                TOPIC, topic, pattern, rule.principal, EVERY_HOST, OPERATIONS[each], ALLOW
            )


def _check(responses: Iterable[tuple[int, str | None]]) -> None:
    for code, text in responses:
        if code:
            raise Rejected(
                "RULE_REFUSED",
                f"the cluster refuses a rule: {text or f'error {code}'}",
                "give an administrator's access, and brokers with an authorizer",
            )
