"""Access to Postgres, which holds the state of the system. Each noun has a .py file with functions and a .sql file with its statements."""
