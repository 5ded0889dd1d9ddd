"""GLUE 2.0 in its realisations: what a real ARC published, what anybody may publish, and what enemies may send."""

from tests.unit.glue.published import arc
from wms.glue import glue2
from wms.glue.quantity import UNKNOWN


def test_a_real_service_is_read_with_all_that_belongs_to_it():
    service = arc()
    assert sorted(share.name for share in service.shares) == ["main", "main_celab", "short", "short_celab"]
    assert [manager.product_name for manager in service.managers] == ["slurm"]
    assert [each.memory_mb for each in service.environments] == [16_000, 16_000]
    assert {each.technology for each in service.endpoints} == {"webservice", "rest"}
    short = next(share for share in service.shares if share.name == "short")
    assert (short.max_wall_seconds, short.default_cpu_seconds, short.min_cpu_seconds) == (1800, 600, UNKNOWN)
    assert short.environments == ("urn:ogf:ExecutionEnvironment:localhost:execenv1",)


def test_policies_that_share_one_identifier_are_those_of_their_shares():
    """ARC names the policies of all shares of a VO alike: a share that lost its own would be open to all."""
    assert {share.name: share.rules for share in arc().shares} == {
        "main": (),
        "short": (),
        "main_celab": ("vo:celab",),
        "short_celab": ("vo:celab",),
    }
    assert all(
        endpoint.rules == ("vo:celab",) for endpoint in arc().endpoints if endpoint.technology == "webservice"
    )


def test_free_slots_of_shares_over_the_same_machines_are_not_added_up():
    assert [share.free_slots for share in arc().shares] == [312] * 4
    assert glue2.free_slots(arc()) == 312


def test_free_slots_are_the_most_that_a_share_sees_where_the_manager_does_not_count():
    service = glue2.Service(
        id="s",
        shares=(glue2.Share(id="a", free_slots=7), glue2.Share(id="b", free_slots=5), glue2.Share(id="c")),
        managers=(glue2.Manager(id="m", total_slots=10),),
    )
    assert glue2.free_slots(service) == 7
