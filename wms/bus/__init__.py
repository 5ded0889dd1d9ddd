"""The message bus: a client of Kafka, consumers whose offsets are in Postgres, and a relay that sends the messages of the outbox."""
