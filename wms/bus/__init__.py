"""The message bus: a client of Kafka's protocol, consumer offsets in Postgres, and a relay that publishes the outbox."""
