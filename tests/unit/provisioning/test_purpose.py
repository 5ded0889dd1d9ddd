"""The purpose of pilots."""

from wms.matching.grouping import Requirements
from wms.provisioning.purpose import GROUPS, Purpose


def test_the_purpose_of_pilots_is_the_most_that_their_jobs_ask_for():
    def work(cpu: int, memory: int = 0, requirements: str = "") -> Requirements:
        return Requirements(
            owner="ann",
            owner_group="",
            vo="lhcb",
            setup="",
            cpu_segment=cpu,
            min_ram_mb=memory,
            requirements=requirements,
        )

    purpose = (
        Purpose().with_work(work(500, 2_000), ("a",)).with_work(work(5_000, requirements="true"), ("b", ""))
    )
    purpose = purpose.with_work(work(50, requirements="false"), ("a",))
    assert purpose == Purpose(
        owner_groups=("a", "b"), cpu_seconds=5_000, memory_mb=2_000, requirements="true"
    )
    for number in range(20):
        purpose = purpose.with_work(work(1), (f"g{number}",))
    assert len(purpose.owner_groups) == GROUPS
