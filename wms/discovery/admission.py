"""Whom an element lets in, by the rules that it publishes (GlueCEAccessControlBaseRule; access and mapping policies).

A rule is `VO:name` (GLUE 2.0: `vo:name`), `VOMS:/vo/group/Role=role`, `ALL`, or a subject as it stands in a certificate. No rules:
everybody is let in.
"""

from collections.abc import Collection

import msgspec

from wms.discovery.server_answers import FoundElement


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """For whom elements are looked for; what is empty is not asked for."""

    vo: str = ""
    group: str = ""
    """A group or role of the VO, by its name, or as VOMS has it: `/lhcb/prod/Role=pilot`."""
    owner: str = ""


def admits(element: FoundElement, askers: Collection[Asker]) -> bool:
    """Tell whether an element lets one of the askers in; there being none, everybody may look."""
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
            # A subject; to ask in the name of a VO alone is to ask for no person in particular.
            return rule == asker.owner or (not asker.owner and not asker.vo)


def _within(rule: str, asker: Asker) -> bool:
    """Tell whether a VOMS rule lets an asker in: all of `/vo/group` is let in where the rule names no role."""
    vo, *groups = rule.strip("/").split("/")
    if asker.vo and vo != asker.vo:
        return False
    if not asker.group or not groups:
        return True
    if asker.group.startswith("/"):
        return f"{asker.group.rstrip('/')}/".startswith(f"{rule.rstrip('/')}/")
    return asker.group in (groups[-1], groups[-1].removeprefix("Role="))
