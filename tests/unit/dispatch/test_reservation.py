"""How middleware is told of reservations."""

from wms.dispatch.reservation import RESERVING, reservation_option


def test_a_reservation_is_an_option_where_there_is_one() -> None:
    assert reservation_option("slurm", "wms-7") == {"reservation": "wms-7"}
    assert reservation_option("lsf", "wms-7") == {"U": "wms-7"}
    assert reservation_option("local", "wms-7") == {}
    assert {kind for kind in ("slurm", "lsf", "arc", "local") if reservation_option(kind, "r")} == set(
        RESERVING
    )


def test_no_reservation_is_no_option() -> None:
    assert reservation_option("slurm", "") == {}
