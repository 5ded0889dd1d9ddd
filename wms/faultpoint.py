"""Named points in the code where a test may kill or stop the process, such as between a commit, a send and the storing of an offset.

`WMS_FAULTPOINT=name`, `name:count` or `name:count:stop` in the environment arms one point. The process kills itself with SIGKILL when it reaches
the point for the count-th time; with `stop` it stops itself with SIGSTOP. Without the variable a point costs one dictionary look-up.
"""

import os
import signal

BUS_POINTS = frozenset(
    {
        "consumer.before_commit",
        "consumer.after_commit",
        "relay.before_send",
        "relay.after_send",
        "relay.after_delete",
    }
)
"""The points in the message bus, which every service reaches."""
PLACING_POINTS = frozenset(
    {"placing.after_direct_send", "placing.after_failure", "placing.after_send", "placing.after_store"}
)
"""The points that the pilot submitter reaches when it sends what the resource broker placed."""
BROKER_POINTS = frozenset({"broker.after_claim", "broker.after_read", "broker.after_step"})
"""The points that the resource broker reaches whenever it takes a step with jobs."""
AGREEMENT_POINTS = frozenset(
    {
        "agreement.after_decision",
        "agreement.after_intent",
        "agreement.after_release",
        "agreement.after_reserve",
    }
)
"""The points that the agreement service reaches when it decides on offers, and makes or releases reservations."""
POINTS = BUS_POINTS | PLACING_POINTS | BROKER_POINTS | AGREEMENT_POINTS

_armed = os.environ.get("WMS_FAULTPOINT", "")
_name, _count, _end, *_ = *_armed.split(":"), "", ""
_left = {_name: int(_count or 1)} if _name else {}
_signal = signal.SIGSTOP if _end == "stop" else signal.SIGKILL

if _name and _name not in POINTS:
    raise SystemExit(f"WMS_FAULTPOINT: no point is named {_name!r}; there are {', '.join(sorted(POINTS))}")


def reach(name: str) -> None:
    """Kill or stop the process if this point is armed and has now been reached for the configured count."""
    if name in _left:
        _left[name] -= 1
        if _left[name] == 0:
            os.kill(os.getpid(), _signal)
