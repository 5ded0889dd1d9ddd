"""A service is up only if each partition of each of its consumers is served, and each of its loops goes on."""

from tests.unit.cli.heartbeats import advertiser, beat, handled, probe, state
from wms.runtime.service_health import problems, summed_up


def test_one_with_a_silent_partition_is_not_up() -> None:
    assert state(beat(probe(0), probe(1, silent=12))) == ("STUCK", "q 1: no probe came back for 12 s")


def test_an_honest_batch_of_half_a_minute_is_busy_and_one_that_stands_still_is_stuck() -> None:
    assert handled(30, 2) == ("busy", "q 1: at one batch for 30 s")
    assert handled(30, 12) == ("STUCK", "q 1: no probe came back for 30 s")
    assert handled(9, 9) == ("STUCK", "q 1: nothing was read for 9 s")
    assert handled(2, 1) == ("STUCK", "q 1: nothing was read for 2 s")


def test_one_that_does_not_read_what_is_its_own_is_not_up() -> None:
    reader = {"partition": 1, "reading": False, "stalled": True, "served_seconds_ago": 9.0}
    stuck = beat(probe(0), probe(1, silent=9), partitions={"q": [reader]})
    assert state(stuck) == ("STUCK", "q 1: no reader is open for 9 s")


def test_a_partition_that_is_nobodys_is_told() -> None:
    assert state(beat(probe(0))) == ("STUCK", "q 1: nobody reads it")
    assert state(beat(probe(0)), beat(probe(1))) == ("up", "handled 7")
    assert state(beat(up_for=2)) == ("up", "handled 7"), "one that has just begun takes its own soon"


def test_of_many_troubles_the_first_are_named() -> None:
    assert summed_up(["a", "b", "c", "d", "e"]) == "a; b; c; 2 more"


def test_counts_of_nothing_are_not_shown() -> None:
    assert state(beat(probe(0), probe(1), refused=0, placed=2)) == ("up", "handled 7, placed 2")


def test_troubles_and_silence_of_advertisers_are_told_with_their_owners() -> None:
    beats = [advertiser("glasgow", slurm="failed"), advertiser("umea", alive=False)]
    assert problems(beats, []) == ["glasgow: slurm failed", "umea: no heartbeat"]
    assert problems([*beats, advertiser("umea")], []) == ["glasgow: slurm failed"]
