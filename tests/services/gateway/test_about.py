"""What the gateway tells of itself to anybody."""

from tests.services.gateway.conftest import Door


async def test_it_is_there_and_tells_what_it_serves(door: Door) -> None:
    async with door.session.get(f"{door.url}/api/v1/health") as answer:
        assert (answer.status, "version" in await answer.json()) == (200, True)
    async with door.session.get(f"{door.url}/api/v1/openapi.json") as answer:
        document = await answer.json()
    assert document["openapi"] == "3.1.0"
    assert "/api/v1/jobs/{job_id}/why" in document["paths"]
