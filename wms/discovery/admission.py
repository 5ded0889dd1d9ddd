"""Decides whom a computing element admits, by the access rules that the element publishes.

A rule is `VO:name` (GLUE 2.0: `vo:name`), `VOMS:/vo/group/Role=role`, `ALL`, or the subject of a certificate. An element without rules
admits everybody.
"""

from collections.abc import Collection

import msgspec

from wms.discovery.server_answers import FoundElement


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """The VO, group and user for whom computing elements are sought. An empty field matches any value."""

    vo: str = ""
    group: str = ""
    """A group or role of the VO, by its name or as a VOMS attribute: `/lhcb/prod/Role=pilot`."""
    owner: str = ""


def admits(element: FoundElement, askers: Collection[Asker]) -> bool:
    """Return whether a computing element admits at least one of the askers; true if there are no askers."""
    rules = element.glue.access_rules or _rules(element)
    return not askers or not rules or any(_lets_in(rule, asker) for rule in rules for asker in askers)


def _rules(element: FoundElement) -> tuple[str, ...]:
    return tuple(f"VO:{vo}" for vo in element.offer.vos) if element.offer else ()


def _lets_in(rule: str, asker: Asker) -> bool:
    kind, _, rest = rule.partition(":")
    match kind.casefold():
        case "all":
            return True
        case "vo":
            return not asker.vo or rest.strip() == asker.vo
        case "voms":
            return _within(rest.strip(), asker)
        case _:
            # The rule is a subject. An asker with a VO and no owner is no particular person.
            return rule == asker.owner or (not asker.owner and not asker.vo)


def _within(rule: str, asker: Asker) -> bool:
    """Return whether a VOMS rule, without its `VOMS:` prefix, admits the asker. A rule without a role admits all roles of its group."""
    vo, *groups = rule.strip("/").split("/")
    if asker.vo and vo != asker.vo:
        return False
    if not asker.group or not groups:
        return True
    if asker.group.startswith("/"):
        return f"{asker.group.rstrip('/')}/".startswith(f"{rule.rstrip('/')}/")
    return asker.group in (groups[-1], groups[-1].removeprefix("Role="))
