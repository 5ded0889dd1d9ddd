"""A whole system on one machine: Postgres, a broker and the services, as child processes that end with their parent."""
