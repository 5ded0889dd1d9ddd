"""The link that a pilot's configuration chooses: the Kafka broker, or a gateway over HTTPS."""

from services.job_agent.link import AgentLink
from wms.auth.orders import PilotCredential
from wms.auth.pilot_secret import PilotSecret
from wms.ids import PilotId
from wms.runtime.pilot_config import PilotConfig


async def chosen_link(config: PilotConfig, text: str) -> AgentLink:
    """Return the pilot's link, not yet open. `text` is the content of its token file.

    For a gateway that is a one-time secret, which is exchanged first; this waits while nobody answers. Raise Rejected if the text is wrong
    or the exchange is refused, Unavailable if nobody answered for long.
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
