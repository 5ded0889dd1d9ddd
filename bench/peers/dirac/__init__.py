"""DIRAC's task queue database, the real class over a real MariaDB."""
