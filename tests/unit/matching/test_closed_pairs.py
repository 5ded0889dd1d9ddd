"""Which pairs of an attribute and a value a job has."""

from tests.unit.matching.strategies import asks
from wms.matching.closed_pairs import has, pairs


def test_a_job_has_the_pairs_that_it_counts_for():
    wanted = asks(owner="alice", job_types=("MC", "User"), tags=("GPU",))
    assert {("job_type", "user"), ("tag", "gpu"), ("owner", "alice"), ("any", "")} <= pairs(wanted)
    assert all(has(wanted, pair) for pair in pairs(wanted))
    assert not has(wanted, ("tag", "MC"))
