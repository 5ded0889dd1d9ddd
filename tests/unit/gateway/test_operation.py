"""Operations."""

from services.gateway.operation import Operation


def test_parameters_in_the_path_are_known() -> None:
    operation = Operation(method="GET", path="/shares/{vo}/{group}", summary="", answer=None)
    assert operation.in_path == {"vo", "group"}
