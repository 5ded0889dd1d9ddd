"""What is closed at a site gives no job there, and bends the draw among the others by nothing."""

import random
from collections import Counter

import numpy as np
import pytest

from tests.unit.matching import reference
from tests.unit.matching.strategies import asks, new_index, offers

SHARP = 1e-4


def three_owners():
    index = new_index()
    for n, owner in enumerate(("alice", "bob", "carol")):
        index.add_queue(n, asks(owner=owner, tags=("GPU",) if n else (), job_types=("MC",)))
        index.add(n, 1, range(100 * n, 100 * n + 20))
    return index


def queues_given(index, **where):
    picks = index.select(offers(tags=("GPU",), **where), 99, np.random.default_rng(1))
    index.restore(picks)
    return {pick.tq_id for pick in picks}


def test_any_closed_pair_keeps_a_queue_back_at_its_place_only():
    index = three_owners()
    index.close("A", [("owner", "alice"), ("owner", "bob")])
    index.close("A", [("tag", "GPU")], ce="ce1")
    assert queues_given(index, site="A") == {2}
    assert queues_given(index, site="A", grid_ce="ce2") == {2}
    assert queues_given(index, site="A", grid_ce="ce1") == set()
    assert queues_given(index, site="B", grid_ce="ce1") == {0, 1, 2}
    assert index.closed("A", "ce1") == {("owner", "alice"), ("owner", "bob"), ("tag", "gpu")}


def test_each_call_replaces_and_no_pairs_open():
    index = three_owners()
    index.close("A", [("any", "")])
    assert queues_given(index, site="A") == set()
    index.close("A", [("owner", "carol")])
    assert queues_given(index, site="A") == {0, 1}
    index.close("A", [])
    assert queues_given(index, site="A") == {0, 1, 2}


def test_queues_that_come_later_are_closed_as_well():
    index = three_owners()
    index.close("A", [("owner", "alice")])
    assert queues_given(index, site="A") == {1, 2}
    index.add_queue(7, asks(owner="alice", tags=("GPU",)))
    index.add(7, 1, [700])
    assert queues_given(index, site="A") == {1, 2}
    assert queues_given(index, site="B") == {0, 1, 2, 7}


def test_nothing_is_closed_by_an_attribute_that_no_job_has():
    with pytest.raises(ValueError, match="nothing is closed by colour; known are owner,"):
        new_index().close("A", [("colour", "red")])


def test_why_nothing_names_the_limit():
    index = three_owners()
    index.close("A", [("job_type", "MC")])
    why = index.why_nothing(offers(site="A"))
    assert [(each.clause, each.queues) for each in why.failed] == [("tags", 2), ("limit", 1)]
    assert "no more jobs of job_type 'mc' may start at A now" in why.text()
    assert why.fitting_queues == 0


@pytest.mark.parametrize("law", ["dirac", "proportional"])
def test_draws_as_if_the_closed_were_not_there(law):
    """Ten queues in four classes; what is closed leaves its class-mates the whole weight of the class."""
    index, queues = new_index(law=law), {}
    for n in range(10):
        wanted = asks(owner=f"o{n % 2}", tags=("x",) if n % 4 == 0 else (), sites=("A", f"S{n}"))
        priority = 1 + n % 3
        index.add_queue(n, wanted)
        index.add(n, priority, range(100 * n, 100 * n + 15))
        queues[n] = reference.Queue(wanted, dict.fromkeys(range(100 * n, 100 * n + 15), priority))
    resource = offers(site="A", tags=("x",))
    index.close("A", [("tag", "x")])
    rng, literal_rng = np.random.default_rng(31), random.Random(32)
    ours: Counter[int] = Counter()
    for _ in range(12_000):
        picks = index.select(resource, 1, rng)
        ours[picks[0].tq_id] += 1
        index.restore(picks)
    open_ = [n for n in queues if not queues[n].requirements.tags]
    heavy = reference.weights(queues, {}, open_)
    literal = Counter(
        reference.by_random(open_, heavy.__getitem__, literal_rng, law)[0] for _ in range(12_000)
    )
    assert set(ours) == set(open_)
    assert reference.homogeneity([ours[n] for n in open_], [literal[n] for n in open_]) > SHARP
