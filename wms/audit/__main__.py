"""`python -m wms.audit --postgres URL [--kafka HOST:PORT] [--json]`: audits a system's database; exit code 1 when a rule is broken."""

import argparse
import asyncio
import sys

import asyncpg
import msgspec
from aiokafka.errors import KafkaError

from wms.audit import audit

EXIT_BROKEN, EXIT_UNAVAILABLE = 1, 75


def main() -> int:
    """Audit the system that the command line names, and print the report.

    Return the exit code: 0, 1 if a rule is broken, or 75 if the database or Kafka does not answer.
    """
    parser = argparse.ArgumentParser(prog="python -m wms.audit", description=__doc__)
    parser.add_argument("--postgres", required=True, metavar="URL", help="the system's database")
    parser.add_argument(
        "--kafka", metavar="HOST:PORT", help="the broker, to hold its event log against the database"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    try:
        report = asyncio.run(audit(options.postgres, kafka=options.kafka))
    except (OSError, asyncpg.PostgresError, KafkaError) as error:
        sys.stderr.write(f"the database or the broker does not answer: {error}\n")
        return EXIT_UNAVAILABLE
    text = msgspec.json.encode(report).decode() if options.json else report.text()
    sys.stdout.write(f"{text}\n")
    return 0 if report.ok else EXIT_BROKEN


if __name__ == "__main__":
    sys.exit(main())
