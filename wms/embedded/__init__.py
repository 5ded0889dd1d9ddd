"""A whole system on one machine: Postgres, a Kafka broker and the services, as child processes that end with their parent."""
