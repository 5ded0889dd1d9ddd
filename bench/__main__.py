"""`python -m bench`: runs all benchmarks, one after another, each in a process of its own."""

import subprocess
import sys

BENCHMARKS = (
    "submission",
    "gateway",
    "gateway_pages",
    "pilot_links",
    "draw",
    "matching",
    "two_sided",
    "brokered",
    "lives",
    "door",
    "why",
    "churn",
    "overtaking",
    "classads",
    "ads",
    "end_to_end",
    "ranking",
)


def main() -> int:
    return max(
        subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode for name in BENCHMARKS
    )


if __name__ == "__main__":
    sys.exit(main())
