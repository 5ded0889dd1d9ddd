"""Wait reasons: their codes and advice."""

from wms.job.wait_reason_codes import WAIT_ADVICE, WaitCode


def test_every_reason_has_advice_but_those_that_pass_by_themselves() -> None:
    assert set(WaitCode) - set(WAIT_ADVICE) == {WaitCode.PLACED, WaitCode.SOON}
