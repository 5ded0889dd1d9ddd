"""Makes the channel of a client by its settings. What takes long to load is loaded for the chosen one alone."""

from pathlib import Path

from wms.client.channel import Channel
from wms.client.credential import TokenFile
from wms.client.settings import ClientSettings


def channel_of(settings: ClientSettings) -> Channel:
    """Return a channel to the system: through its gateway if the settings name one, else over its broker."""
    tokens = TokenFile(Path(settings.auth.token_file))
    if settings.gateway:
        from wms.client.gateway_channel import GatewayChannel

        return GatewayChannel(settings.gateway, tokens)
    from wms.client.exchange import Exchange

    return Exchange(settings.kafka, tokens)
