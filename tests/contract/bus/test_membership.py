"""Which partitions an instance may read, by its heartbeat."""

import pytest

from wms.bus.membership import Membership
from wms.ids import InstanceId


def test_no_partition_without_a_fresh_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    membership = Membership(InstanceId("a"))
    assert membership.share("test", 4) == ()
    now = 100.0
    monkeypatch.setattr("wms.bus.membership.time.monotonic", lambda: now)
    membership.update({"test": [InstanceId("a"), InstanceId("b")], "other": [InstanceId("b")]})
    assert membership.share("test", 4) == (0, 2)
    assert membership.share("other", 4) == ()
    assert membership.share("none", 4) == ()
    now += 3.9
    assert membership.share("test", 4) == (0, 2)
    now += 0.2
    assert membership.share("test", 4) == ()


def test_a_late_answer_to_a_heartbeat_prolongs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop was busy for seconds between the database's answer and the update."""
    membership = Membership(InstanceId("a"))
    now = 100.0
    monkeypatch.setattr("wms.bus.membership.time.monotonic", lambda: now)
    membership.update({"test": [InstanceId("a")]}, 97.0)
    assert membership.share("test", 2) == (0, 1)
    now += 1.1
    assert membership.share("test", 2) == ()
    assert membership.assigned("test", 2) == (0, 1)
