"""Requests about shares and limits and the messages that they become."""

from services.gateway.route import Requester, Route
from services.gateway.rule_routes import ROUTES, LimitDrop, OneGroup, ShareSetting
from wms.messages import commands
from wms.messages.limits import CounterKey, Limit

ME = Requester("an-id", "a-client")


def route(method: str, path: str) -> Route:
    (found,) = [each for each in ROUTES if (each.method, each.path) == (method, path)]
    return found


def test_a_share_is_set_and_reset() -> None:
    group = OneGroup(vo="atlas", group="higgs")
    setting = route("PUT", "/shares/{vo}/{group}").message(ME, group, ShareSetting(job_share=5.0))
    assert isinstance(setting, commands.SetShare)
    assert (setting.vo, setting.owner_group, setting.job_share, setting.background) == (
        "atlas",
        "higgs",
        5.0,
        None,
    )
    reset = route("DELETE", "/shares/{vo}/{group}").message(ME, group)
    assert isinstance(reset, commands.ResetShare)


def test_a_limit_is_set_and_dropped() -> None:
    setting = route("PUT", "/limits").message(ME, None, Limit(site="cern", most=5))
    assert isinstance(setting, commands.SetLimit)
    assert (setting.limit.site, setting.limit.most) == ("cern", 5)
    key = CounterKey("cern", "", "any", "")
    drop = route("POST", "/limits/drop").message(ME, None, LimitDrop(kind="running", key=key, reset=True))
    assert isinstance(drop, commands.DropLimit)
    assert (drop.key, drop.reset) == (key, True)
