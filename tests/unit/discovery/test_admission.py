"""Who is let in by an element."""

import pytest
from msgspec.structs import replace

from tests.unit.discovery.grid import element
from wms.discovery.admission import Asker, admits
from wms.site import ComputingElement as Offer


@pytest.mark.parametrize(
    ("rules", "asker", "lets_in"),
    [
        ((), Asker(vo="lhcb"), True),
        (("VO:lhcb",), Asker(vo="lhcb"), True),
        (("vo:lhcb",), Asker(vo="lhcb", group="prod"), True),
        (("VO:atlas",), Asker(vo="lhcb"), False),
        (("VO:atlas", "VO:lhcb"), Asker(vo="lhcb"), True),
        (("VO:lhcbx",), Asker(vo="lhcb"), False),
        (("VOMS:/lhcb/Role=production",), Asker(vo="lhcb"), True),
        (("VOMS:/lhcb/Role=production",), Asker(vo="lhcb", group="production"), True),
        (("VOMS:/lhcb/Role=production",), Asker(vo="lhcb", group="user"), False),
        (("VOMS:/lhcb/prod",), Asker(vo="lhcb", group="/lhcb/prod/Role=pilot"), True),
        (("VOMS:/lhcb/prod",), Asker(vo="lhcb", group="/lhcb/production"), False),
        (("VOMS:/lhcbx/prod",), Asker(vo="lhcb"), False),
        (("VOMS:/lhcb",), Asker(vo="lhcb", group="user"), True),
        (("/O=Grid/CN=ann",), Asker(vo="lhcb", owner="/O=Grid/CN=ann"), True),
        (("/O=Grid/CN=ann",), Asker(vo="lhcb", owner="/O=Grid/CN=bob"), False),
        (("/O=Grid/CN=ann",), Asker(vo="lhcb"), False),
        (("ALL",), Asker(vo="lhcb"), True),
    ],
)
def test_rules_let_in(rules: tuple[str, ...], asker: Asker, lets_in: bool) -> None:  # noqa: FBT001 - a column
    assert admits(element("s", *rules), [asker]) is lets_in
    assert admits(element("s", *rules), [Asker(vo="nobody"), asker]) is lets_in
    assert admits(element("s", *rules), [])


def test_an_offer_without_rules_has_those_of_its_vos() -> None:
    offer = Offer(site="s", ce="c", slots=1, max_cpu_time=1, vos=("atlas",))
    told = replace(element("s"), offer=offer)
    assert not admits(told, [Asker(vo="lhcb")])
    assert admits(told, [Asker(vo="atlas")])
