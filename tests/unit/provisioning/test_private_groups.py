"""Groups that want private pilots."""

from tests.unit.provisioning.private_work import sent, work


def test_for_a_group_that_wants_them_private_pilots_are_sent_by_owner_or_for_all_that_share() -> None:
    both = work(2), work(3, owner="bob"), work(1, owner_group="h")
    assert sent(*both) == {"all": 6}
    assert sent(*both, senders=True) == {"ann@g": 2, "bob@g": 3, "all": 1}
    assert sent(*both, senders=True, sharing=True) == {"g": 5, "all": 1}
    assert sent(work(pilot_types=("generic",)), senders=True) == {"all": 1}
