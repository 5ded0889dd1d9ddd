"""What the processes of wms start without; each imports this first.

Where rich is installed structlog imports it, for traces that no service prints: a sixth of the time to start. Nor is there
garbage to be looked for among modules: another sixth.
"""

import gc
import sys

_program = getattr(sys.modules["__main__"], "__spec__", None)
if _program is not None and _program.name.startswith("services.") and _program.name.endswith(".__main__"):
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    gc.disable()


def started() -> None:
    """Look for garbage from now on, and never among what was imported: looking once would take longer than it frees is worth."""
    gc.freeze()
    gc.enable()
