"""`wms kafka-acls`: the access rules (ACLs) that a Kafka cluster needs, as commands of Kafka's own tool."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import Flag
from wms.cli.printing import note, show, show_json
from wms.cli.session import OK
from wms.errors import Rejected

if TYPE_CHECKING:
    from wms.bus.connection_settings import KafkaSettings

Names = Annotated[tuple[str, ...], Parameter(negative="")]


def kafka_acls(
    *,
    service: Annotated[Names, Parameter(help="a principal of the services")] = (),
    user: Annotated[Names, Parameter(help="OWNER, or OWNER=PRINCIPAL: a user's tools")] = (),
    advertiser: Annotated[Names, Parameter(help="a principal of advertisers")] = (),
    pilots: Annotated[Names, Parameter(help="SITE, or SITE=PRINCIPAL: the pilots at a site")] = (),
    tool: Annotated[str, Parameter(help="how Kafka's tool is called")] = "kafka-acls.sh",
    bootstrap: Annotated[str, Parameter(help="the brokers' addresses, for the commands")] = "localhost:9092",
    apply: Annotated[
        Path | None,
        Parameter(help="add the rules now, with the [kafka] access of an administrator in this TOML file"),
    ] = None,
    json: Annotated[Flag, Parameter(help="print the rules as JSON")] = False,
) -> int:
    """Print the access rules of a Kafka cluster, as commands of Kafka's own tool, or add them to the cluster.

    A principal is the name by which the brokers know a client: User:NAME with SASL, User:CN=NAME,... with certificates. Where none is given,
    OWNER stands for User:OWNER, and SITE for User:SITE. The brokers need an authorizer that refuses what no rule allows. Where all users and pilots come
    through the gateway, services alone need rules.

    For example:
      wms kafka-acls --service User:wms --user alice --pilots CERN=User:pilots-cern | sh
      wms kafka-acls --service User:wms --advertiser User:sites --apply admin.toml
      wms kafka-acls --user bob --json
    """
    from wms.bus import acls

    rules = [
        *(rule for each in service for rule in acls.of_services(each)),
        *(rule for each in user for rule in acls.of_user(_principal(each), _name(each))),
        *(rule for each in advertiser for rule in acls.of_advertiser(each)),
        *(rule for each in pilots for rule in acls.of_pilots(_principal(each), _name(each))),
    ]
    if not rules:
        raise Rejected("NO_PRINCIPAL", "nobody is named", "name --service, --user, --advertiser or --pilots")
    if apply is not None:
        import asyncio

        asyncio.run(acls.write_rules(_access(apply), rules))
        note(f"{len(rules)} rules added")
    if json:
        show_json([each._asdict() for each in rules])
    elif apply is None:
        show(acls.script(rules, [tool, "--bootstrap-server", bootstrap]).rstrip("\n"))
    return OK


def _access(file: Path) -> "KafkaSettings":
    import tomllib

    import msgspec

    from wms.bus.connection_settings import KafkaSettings

    try:
        return msgspec.convert(tomllib.loads(file.read_text("utf-8")).get("kafka", {}), KafkaSettings)
    except (OSError, ValueError) as error:
        raise Rejected(
            "BAD_ACCESS_FILE", f"{file}: {error}", "it needs a [kafka] table, as services have"
        ) from None


def _name(text: str) -> str:
    return text.partition("=")[0]


def _principal(text: str) -> str:
    name, _, principal = text.partition("=")
    return principal or f"User:{name}"
