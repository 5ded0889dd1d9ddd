"""Reasons of decisions as programs see them."""

from wms.agreement.reasons import AgreementReason


def test_a_code_is_its_own_name() -> None:
    assert all(code.name == code.value for code in AgreementReason)
