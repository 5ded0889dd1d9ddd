#!/usr/bin/python3
"""A mapping script, a sample for a site with Slurm: reads what hosts must have, prints options of sbatch.

The slowest class of nodes that is fast enough is asked for by its feature, and scratch space in whole gigabytes.
"""

import json
import sys
from typing import Any

CLASSES = [(400, "old"), (900, "middle"), (1800, "new")]
"""Classes of nodes: what they do in the SPECint2000 benchmark, and their feature in slurm.conf. Slower ones first."""


def option(requirement: "dict[str, Any]") -> "str | None":
    """Return the option for a requirement that this site knows how to ask for, else None."""
    attribute, relation, value = (requirement[key] for key in ("attribute", "relation", "value"))
    if relation not in (">=", ">"):
        return None
    if attribute == "scratchmb":
        return f"--tmp={int(value) // 1024 + 1}G"
    if attribute == "gluehostbenchmarksi00":
        fit = [feature for speed, feature in CLASSES if speed > value]
        return f"--constraint={fit[0]}" if fit else None
    return None


def main() -> None:
    """Answer one question."""
    question = json.load(sys.stdin)
    options, asked = set(), []
    for requirement in question["requirements"]:
        found = option(requirement)
        if found is not None:
            options.add(found)
            asked.append(requirement["text"])
    json.dump({"options": sorted(options), "asked": asked}, sys.stdout)


if __name__ == "__main__":
    main()
