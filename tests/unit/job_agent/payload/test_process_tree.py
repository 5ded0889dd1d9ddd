"""Processes of payloads, by the mark that they inherit."""

import os

from services.job_agent.payload import shepherd
from services.job_agent.payload.process_tree import usage_by_mark


def test_a_look_at_this_process() -> None:
    mark = shepherd.mark_of(os.getpid())
    assert mark is not None
    tree = usage_by_mark([mark])[mark]
    assert os.getpid() in tree.pids
    assert tree.rss_bytes > 10 << 20
    assert tree.cpu_seconds > 0


def test_of_a_payload_in_an_image_what_is_outside_of_its_container_does_not_count() -> None:
    mark = shepherd.mark_of(os.getpid())
    assert mark is not None
    assert os.getpid() in usage_by_mark([mark])[mark].pids
    assert os.getpid() not in usage_by_mark([mark], {mark: os.getpid()})[mark].pids
