"""The topics of the system: what is shared, and what is somebody's inbox."""

from wms.bus.topics import SHARED, Topic, find


def test_what_is_not_shared_is_an_inbox() -> None:
    assert all(find(topic.name) is topic for topic in SHARED)
    assert find("wms.user.ann.inbox") == Topic("wms.user.ann.inbox", 1, 1)
