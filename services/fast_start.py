"""Makes service processes start faster; their main modules import this module first.

structlog imports rich if it is installed, for tracebacks that no service prints: a sixth of the time to start. Collecting
garbage among freshly imported modules takes another sixth. This module prevents both.
"""

import gc
import sys

_program = getattr(sys.modules["__main__"], "__spec__", None)
if _program is not None and _program.name.startswith("services.") and _program.name.endswith(".__main__"):
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    gc.disable()


def started() -> None:
    """Turn on garbage collection. Objects of the modules imported so far are excluded, since they are never freed."""
    gc.freeze()
    gc.enable()
