"""A workload management system: jobs wait in task queues, pilots at computing sites pull the ones that fit.

The map, from the ground up (each layer imports only what stands below it):

* `ids`, `errors`, `backoff`, `bounded_cache`: names, outcomes, pauses, what is kept for a while.
* `job`, `lease`, `site`: what a job's life is, who holds one, what sites offer.
* `classad`: ads and expressions over them: matches, ranks, what is left, why not.
* `jobdesc`, `auth`: what users write, and who they are.
* `matching`: the rules by which a job and a resource fit. Pure decisions.
* `queue_index`: the engine that holds all waiting jobs and draws one that fits, behind one class.
* `provisioning`: how many pilots are sent where. Pure decisions.
* `why`: why a job waits, what would do instead, and when it may start, by the same decisions.
* `messages`: what travels, one module a topic.
* `telemetry`, `web`: logs; calls to other people's servers.
* `db`, `dispatch`, `transfer`, `discovery`: Postgres, batch systems, storage, index servers.
* `bus`: Kafka, offsets in Postgres, the outbox.
* `runtime`: what a service runs in.
* `client`, `embedded`: the Python API; a whole system on one machine.
* `audit`, `replay`, `demo`: checks of the database; traces of real systems, run again; a real workload, run and verified.
* `cli`: the command line.
"""

__version__ = "0.1.0"
