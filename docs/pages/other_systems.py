"""`docs/guide/coming-from.md`: the commands of other systems, and what does the same here."""

from docs.pages.structs import head, row
from wms.cli.other_systems import SYSTEMS

LEAD = """# Coming from another system

What you type there, and what does it here. Given a command of another system, as in `wms` `squeue`, the tool names ours. Documents and batch
scripts of these systems are [submitted as they are](languages.md).
"""


def page() -> str:
    """Return the page."""
    tables = [
        "\n".join(
            [
                f"## {system}\n",
                *head("There", "Here"),
                *(row(f"`{name}`", ours) for name, ours in table.items()),
            ]
        )
        for system, table in SYSTEMS.items()
    ]
    return "\n\n".join([LEAD.rstrip("\n"), *tables]) + "\n"
