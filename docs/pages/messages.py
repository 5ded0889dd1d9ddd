"""`docs/messages.md`: every topic, message and field."""

from collections.abc import Mapping

from docs.pages.channels import CHANNELS, Channel, tag
from docs.pages.structs import Kind, below, default, field_docs, head, prose, row, say, struct_of
from wms.bus.kafka import HEADER
from wms.messages.wire import PAYLOAD_LIMIT

LEAD = f"""# Messages

Everything that services, agents and tools say to each other, from the structs in [`wms/messages/`](../wms/messages).
For programs: [`asyncapi.json`](asyncapi.json), and a JSON Schema for each topic in [`schema/`](schema).

* One message is one JSON object in UTF-8, at most {PAYLOAD_LIMIT:,} bytes. Its field `type` says which message it is.
* A field that is not given has its default. A field that is not known is passed over.
* Who sent a message is never a field of it. The Kafka header `{HEADER}: Bearer TOKEN` says it, where a token is asked
  for below; the consumer verifies it ([ADR 6](adr/0006-tokens-in-a-header.md)).
* Any message may come twice. Ids (`command_id`, `request_id`, `report_id`, job and epoch, job and `seq`) tell.
* What cannot be read goes to the [dead letters](operations.md#dead-letters), and the partition goes on.

## How messages may change

1. A new field has a default that means what its absence meant before.
2. A field is never renamed, removed, narrowed, or given another meaning. A new meaning is a new message.
3. A value is added to an enumeration only once every reader in service knows it.
4. The golden files in [`tests/data/messages/`](../tests/data/messages) only grow: a file once committed is never edited,
   since messages like it may still be in a topic, in the outbox or among the dead letters. A new field comes with a new
   file beside the old ones. The tests read every file ever written with today's structs.
"""

TRUST = """A broker without access rules lets whoever reaches it write anything anywhere. So nothing is believed for the topic that it
came on."""


def page() -> str:
    """Return the page."""
    lines = [LEAD, "## Topics", "", *_topics(), "## What is believed", "", TRUST, "", *_trusted()]
    shown: dict[Kind, None] = {}
    told: dict[tuple[Kind, ...], str] = {}
    for channel in CHANNELS:
        lines += _channel(channel, told)
        told[channel.kinds] = channel.topic.name
        for kind in channel.kinds:
            shown.update(dict.fromkeys(below(kind)))
    lines += ["## Parts", "", "Structs that messages hold.", ""]
    for kind in sorted(shown, key=lambda each: each.__name__):
        lines += [f"### {kind.__name__}", "", prose(kind), "", *_fields(kind), ""]
    return "\n".join(lines).rstrip() + "\n"


def _topics() -> list[str]:
    lines = head("Topic", "Partitions", "Kept", "From", "To", "Token", "Messages")
    for channel in CHANNELS:
        topic = channel.topic
        lines.append(
            row(
                f"[`{topic.name}`](#{_anchor(topic.name)})",
                str(topic.partitions),
                "the last of each key" if topic.is_compacted else f"{topic.retention_hours} h",
                channel.writers,
                channel.readers,
                channel.bearer or "none",
                ", ".join(f"[`{tag(kind)}`](#{tag(kind)})" for kind in channel.kinds),
            )
        )
    return [*lines, ""]


def _trusted() -> list[str]:
    lines = head("Topic", "Who may write", "What is believed")
    for channel in CHANNELS:
        writers = f"with a token: {channel.bearer}" if channel.bearer else "whoever reaches the broker"
        lines.append(row(f"`{channel.topic.name}`", writers, channel.trust))
    return [*lines, ""]


def _anchor(name: str) -> str:
    return "".join(each for each in name if each.isalnum() or each == "-")


def _channel(channel: Channel, told: Mapping[tuple[Kind, ...], str]) -> list[str]:
    """Return the part about a channel; `told` has the topics whose messages were described before."""
    lines = [f"## `{channel.topic.name}`", "", _sentences(channel), ""]
    if (same := told.get(channel.kinds)) is not None:
        return [*lines, f"The messages are those of [`{same}`](#{_anchor(same)}).", ""]
    for kind in channel.kinds:
        lines += [f"### `{tag(kind)}`", "", prose(kind), "", *_fields(kind), ""]
    return lines


def _fields(kind: Kind) -> list[str]:
    known = struct_of(kind)
    if not known.fields:
        return ["No fields."]
    docs = field_docs(kind)
    lines = head("Field", "Type", "Default", "")
    for field in known.fields:
        value = "" if field.required else f"`{default(field)}`"
        lines.append(row(f"`{field.encode_name}`", say(field.type), value, docs.get(field.name, "")))
    return lines


def _sentences(channel: Channel) -> str:
    """Return what the module says of its topic, without the name that the heading says already."""
    said = prose(channel.module).partition(": ")[2]
    return said[:1].upper() + said[1:]
