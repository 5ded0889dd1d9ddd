"""A complete system on one machine: Postgres, a Kafka broker and all services, as child processes that end with their parent."""
