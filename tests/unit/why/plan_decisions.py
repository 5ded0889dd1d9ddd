"""What the pilot submitter decided on an element at its last plan, as examples."""

from typing import Any

from wms.provisioning.plan_report import ElementDecision, WorkDecision


def decision(ce: str, **share: Any) -> ElementDecision:
    """Return the decision on the element `ce` of site A, which orders nothing for one kind of work. `share` are fields of its part."""
    asked = {
        "vo": "v",
        "cpu_segment": 500,
        "processors": 1,
        "wanted": 1,
        "taken": 0,
        "sent": 0,
        "elsewhere": 0,
    }
    return ElementDecision(
        site="A", ce=ce, ordered=0, reasons=(), shares=(WorkDecision(**{**asked, **share}),)
    )
