"""Dead letters by the client, over Kafka and over HTTPS alike."""

import asyncpg
import msgspec
import pytest

from tests.system.place import Place
from wms.client import Client, ClientSettings, Rejected

BROKEN = "nobody.broken"


async def test_dead_letters_are_for_operators(settings: ClientSettings, place: Place) -> None:
    async with Client.connect(settings) as client:
        with pytest.raises(Rejected, match="NOT_ALLOWED"):
            [line async for line in client.dead_letters()]
        with pytest.raises(Rejected, match="NOT_ALLOWED"):
            await client.drop_dead_letters([1], "a test")
    operator = place.settings("oz", rights=("operator",))
    ours = msgspec.structs.replace(operator, gateway=settings.gateway, kafka=settings.kafka)
    async with Client.connect(ours) as client:
        numbers = [await _buried(place, n) for n in (1, 2)]
        listed = [line async for line in client.dead_letters(consumer=BROKEN)]
        assert [line.number for line in listed] == numbers[::-1]
        shown = await client.dead_letter(numbers[0])
        assert (shown.payload, shown.letter.error, shown.sender) == ("{}", "bad", None)
        assert "1 asked for" in await client.replay_dead_letters(numbers[:1], "mended")
        with pytest.raises(Rejected, match="NO_SUCH_LETTER"):
            await client.drop_dead_letters([numbers[1], 10**9], "a test")
        assert await client.drop_dead_letters(numbers, "a test") == "2 dropped"
        assert [line async for line in client.dead_letters(consumer=BROKEN)] == []
        with pytest.raises(Rejected, match="NO_SUCH_PARTITION"):
            await client.skip_message(BROKEN, "wms.job.queries", 0, 0, reason="slow")


async def _buried(place: Place, number: int) -> int:
    connection = await asyncpg.connect(place.postgres)
    try:
        return int(
            await connection.fetchval(
                "insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, payload, error)"
                " values ($1, 'k', 't', 0, $2, '{}', 'bad') returning dead_letter_id",
                BROKEN,
                number,
            )
        )
    finally:
        await connection.close()
