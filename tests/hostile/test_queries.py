"""Questions that are dear to answer cost only who asks them."""

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target
from wms.client import Client, JobDescription, select
from wms.messages import queries
from wms.messages.commands import Selector


async def test_a_thousand_overlapping_ranges_count_right_and_block_nobody(
    target: Target, innocent: Innocent
) -> None:
    async with Client.connect(target.settings("counter")) as client:
        mine = await client.submit(
            JobDescription(executable="/bin/true", array=100_000, tags=("nobody-has-it",))
        )
        first, last = mine.ids[0]
        overlapping = Selector(ids=tuple((first, last - n) for n in range(1_000)))
        asked = [queries.CountJobs(query_id=f"q-{n}", client="x", selector=overlapping) for n in range(20)]
        async with innocent.beside():
            await target.send(queries.TOPIC, asked, target.user_token("counter"))
            assert await client.counts(overlapping) == {"Waiting": 100_000}
        await client.kill(select(everything=True))


async def test_nonsense_in_questions_is_answered_as_nonsense(target: Target, innocent: Innocent) -> None:
    token = target.user_token("mallory")
    nonsense = [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"type":"count-jobs","query_id":"q","client":"x","selector":{"ids":[[9223372036854775807,9223372036854775808]]}}',
        b'{"type":"count-jobs","query_id":"q","client":"x","selector":{"ids":[[9,1]]}}',
        b'{"type":"count-jobs","query_id":"q","client":"x","selector":{"owner":"a\\u0000b"}}',
        b'{"type":"show-job","query_id":"q","client":"x","job_id":9223372036854775808}',
        b'{"type":"show-job","query_id":"q","client":"x","job_id":-9223372036854775808}',
    ]
    async with innocent.beside():
        for partition in range(4):
            await target.send(queries.TOPIC, nonsense, token, partition=partition)
