"""Access to Postgres, which holds the state of the system.

Each subject, such as jobs or leases, has a .py file with functions and a .sql file with the SQL statements that these functions run.
"""
