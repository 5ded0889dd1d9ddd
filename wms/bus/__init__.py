"""The message bus: Kafka's protocol, offsets kept in Postgres, an outbox relayed to it."""
