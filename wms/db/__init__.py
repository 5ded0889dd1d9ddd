"""The truth in Postgres: a pool, a transaction that carries messages, and one pair of .py and .sql a noun."""
