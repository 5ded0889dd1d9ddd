"""What a pilot starts without; imported first.

Where rich is installed structlog imports it, for traces that no pilot prints: a fifth of the time to start. Nor is there
garbage to be looked for among modules.
"""

import gc
import sys

_program = getattr(sys.modules["__main__"], "__spec__", None)
if _program is not None and _program.name == "services.job_agent.__main__":
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    gc.disable()


def started() -> None:
    """Look for garbage from now on, and never among what was imported."""
    gc.collect()
    gc.freeze()
    gc.enable()
