"""The database, which holds the truth: a pool, a transaction that carries messages, and a .py and .sql file for each noun."""
