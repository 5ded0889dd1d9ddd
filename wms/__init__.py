"""A workload management system: jobs wait in task queues, and pilots at computing sites pull the jobs that fit.

The packages, from the ground up (each layer imports only layers listed before it):

* `ids`, `errors`, `backoff`, `bounded_cache`: ids, errors, retry delays, bounded caches.
* `job`, `lease`, `site`: the states of a job, leases of jobs, descriptions of sites.
* `classad`: ads and expressions over them: matches, ranks, partial evaluation, explanations.
* `jobdesc`, `auth`: job descriptions, and the identity of users.
* `matching`: the rules by which a job and a resource fit. Pure decisions.
* `queue_index`: the engine that holds all waiting jobs and draws one that fits, behind one class.
* `provisioning`: the number of pilots to send to each place. Pure decisions.
* `why`: why a job waits, which changes would help, and when it may start, by the same decisions.
* `messages`: the messages on the bus, one module a topic.
* `telemetry`, `web`: logs; calls to servers of others.
* `db`, `dispatch`, `transfer`, `discovery`: Postgres, batch systems, storage, index servers.
* `bus`: Kafka, offsets in Postgres, the outbox.
* `runtime`: the process that a service runs in.
* `client`, `embedded`: the Python API; a whole system on one machine.
* `audit`, `replay`, `demo`: checks of the database; traces of real systems, run again; a real workload, run and verified.
* `cli`: the command line.
"""

__version__ = "0.1.0"
