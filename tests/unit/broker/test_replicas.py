"""Storage is known by the hosts of URLs; logical names restrict where a job goes."""

import pytest

from tests.unit.broker.examples import job, place
from wms.broker.job_to_place import FileToMove
from wms.broker.knowledge import Knowledge
from wms.broker.replicas import is_logical, is_near, lacking_inputs, storage_host


@pytest.mark.parametrize(
    ("url", "host"),
    [("https://SE.example:8443/a", "se.example"), ("lfn:/a/b", ""), ("/tmp/a", ""), ("http://[::1", "")],
)
def test_a_url_names_its_storage_by_its_host(url: str, host: str) -> None:
    assert storage_host(url) == host


def test_near_storage_is_a_host_or_a_url() -> None:
    at = place(near_storage=("se.umea.example", "https://cache.umea.example/x"))
    assert is_near(at, "se.umea.example")
    assert is_near(at, "cache.umea.example")
    assert not is_near(at, "se.lund.example")
    assert not is_near(at, "")


def test_only_logical_names_are_input_data() -> None:
    assert is_logical(FileToMove(name="a", urls=("LFN:/a",)))
    assert not is_logical(FileToMove(name="a", urls=("lfn:/a", "https://x/a")))
    assert not is_logical(FileToMove(name="a", urls=()))


def test_data_that_nobody_knows_exclude_no_site() -> None:
    wanted = job(inputs=(FileToMove(name="a", urls=("lfn:/a",)),))
    assert lacking_inputs(wanted, place(), Knowledge()) is None
