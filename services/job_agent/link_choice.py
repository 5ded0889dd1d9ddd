"""Chooses the link of a pilot, its connection to the services: the Kafka broker, or a gateway over HTTPS."""

from services.job_agent.link import AgentLink
from wms.auth.orders import PilotCredential
from wms.auth.pilot_secret import PilotSecret
from wms.ids import PilotId
from wms.runtime.pilot_config import PilotConfig


async def chosen_link(config: PilotConfig, text: str) -> AgentLink:
    """Return the pilot's link (its connection to the services), not yet open. `text` is the content of the pilot's token file.

    The file has a token and a key if the configuration has no gateway. With a gateway it has a one-time secret, which is
    first exchanged for them. The exchange is repeated for up to 15 minutes while there is no answer; then Unavailable is
    raised. Raise Rejected if the text is malformed or the exchange is refused.
    """
    # Each library is loaded only where it is used: both take long, and most of a pilot's start.
    pilot_id = PilotId(config.pilot.pilot_id)
    if config.gateway.url:
        from services.job_agent.https_link import HttpsLink
        from services.job_agent.secret_exchange import exchanged

        credential = await exchanged(config.gateway, PilotSecret.parse(pilot_id, text))
        return HttpsLink(config.gateway, pilot_id, config.pilot.site, credential)
    from services.job_agent.kafka_link import KafkaLink

    return KafkaLink(config.kafka, pilot_id, config.pilot.site, PilotCredential.parse(text))
