"""A candidate says what its ad and its record in GLUE say, and None where they say nothing."""

from tests.unit.broker.examples import element
from wms.broker.candidate import advertised_candidate, candidate
from wms.glue.glue1 import GlueComputingElement, GlueHosts, StorageBinding


def test_a_published_queue_tells_its_load_its_speed_and_its_storage() -> None:
    glue = GlueComputingElement(
        id="x", running_jobs=8, waiting_jobs=3, free_job_slots=2, free_cpus=99, estimated_response_seconds=600,
        hosts=GlueHosts(sf00=1750), storage=(StorageBinding(storage_element="se.umea.example"),),
    )  # fmt: skip
    found = candidate(element(), glue, reserves=True)
    assert (found.running_jobs, found.waiting_jobs, found.free_slots) == (8, 3, 2)
    assert (found.response_seconds, found.benchmarks) == (600.0, {"specfp2000": 1750.0})
    assert found.near_storage == ("se.umea.example",)
    assert (found.site, found.ce, found.slots, found.reserves) == ("umea", "batch", 10, True)


def test_what_is_not_published_is_none() -> None:
    found = candidate(element(), GlueComputingElement(id="x"))
    assert (found.running_jobs, found.waiting_jobs, found.free_slots, found.response_seconds) == (None,) * 4
    assert found.benchmarks == {}


def test_a_stored_ad_tells_by_the_names_of_glue() -> None:
    told = {
        "GlueCEStateWaitingJobs": 444_444, "GlueCEStateRunningJobs": 5, "GlueCEStateEstimatedResponseTime": 2_146_660_842,
        "GlueHostBenchmarkSI00": 1200, "GlueHostBenchmarkNASLUC": 450, "GlueCESEBindGroupSEUniqueID": ["se1", "se2"],
    }  # fmt: skip
    found = advertised_candidate(element(current_submitting_jobs=4), told)
    assert (found.running_jobs, found.waiting_jobs, found.response_seconds) == (5, 4, None)
    assert found.benchmarks == {"specint2000": 1200.0, "nasluc": 450.0}
    assert found.near_storage == ("se1", "se2")
