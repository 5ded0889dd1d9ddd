"""One of several clients of DIRAC's TaskQueueDB. Run by DIRAC's Python, not ours: `client.py FOLDER INDEX CLIENTS`.

It says "ready". For each line "ACTION SECONDS" it works for so long, and prints what it did as one JSON object.
"""

import itertools
import json
import os
import random
import sys
import time
from pathlib import Path

MANY = {
    "Sites": "sites",
    "BannedSites": "banned",
    "Platforms": "platforms",
    "JobTypes": "job_types",
    "Tags": "tags",
}


def main():
    folder, index, clients = Path(sys.argv[1]), *map(int, sys.argv[2:4])
    client = Client(open_database(folder), folder, index, clients)
    actions = {"load": client.load, "match": client.match, "insert": client.insert}
    print("ready", flush=True)
    for line in sys.stdin:
        action, seconds = line.split()
        before = time.process_time()
        found = actions[action](float(seconds))
        print(json.dumps({**found, "cpu": time.process_time() - before}), flush=True)


def open_database(folder):
    os.environ["DIRACSYSCONFIG"] = str(folder / "dirac.cfg")
    from DIRAC import gConfig, gLogger

    gLogger.setLevel("ERROR")
    loaded = gConfig.loadFile(str(folder / "dirac.cfg"))
    assert loaded["OK"], loaded
    from DIRAC.WorkloadManagementSystem.DB.TaskQueueDB import TaskQueueDB

    return TaskQueueDB(parentLogger=gLogger)


class Client:
    """Asks for jobs and inserts some, one after another; each time it goes on where it ended."""

    def __init__(self, database, folder, index, clients):
        pilots = json.loads((folder / "pilots.json").read_text())
        self._database, self._folder = database, folder
        self._requests = itertools.cycle(
            [(n, request(pilots[n])) for n in range(index, len(pilots), clients)]
        )
        self._queues = json.loads((folder / "queues.json").read_text())
        self._rng = random.Random(index)
        self._ids = itertools.count(100_000_000 + index * 1_000_000)

    def load(self, _):
        """Fill the tables, which DIRAC has just made, from files."""
        import MySQLdb

        access = json.loads((self._folder / "access.json").read_text())
        connection = MySQLdb.connect(**access, local_infile=1)
        cursor = connection.cursor()
        cursor.execute("set foreign_key_checks = 0")
        for table in ("tq_TaskQueues", *(f"tq_TQTo{name}" for name in MANY), "tq_Jobs"):
            path = self._folder / f"{table}.csv"
            cursor.execute(f"load data local infile '{path}' into table {table} fields terminated by ','")
            connection.commit()
            cursor.execute(f"analyze table {table}")
            cursor.fetchall()
        cursor.execute("select count(*) from tq_Jobs")
        return {"jobs": cursor.fetchone()[0]}

    def match(self, seconds):
        matches, nothing, times = [], 0, []
        began = time.perf_counter()
        while (before := time.perf_counter()) < began + seconds:
            n, asked = next(self._requests)
            answer = self._database.matchAndGetJob(asked)
            times.append(time.perf_counter() - before)
            assert answer["OK"], answer
            if answer["Value"]["matchFound"]:
                matches.append((answer["Value"]["jobId"], n))
            else:
                nothing += 1
        return {"seconds": time.perf_counter() - began, "times": times, "done": matches, "nothing": nothing}

    def insert(self, seconds):
        """Insert into queues that are there."""
        times = []
        began = time.perf_counter()
        while (before := time.perf_counter()) < began + seconds:
            queue = self._rng.choice(self._queues)
            wanted = {"Owner": queue["owner"], "OwnerGroup": queue["group"], "CPUTime": queue["cpu_time"]}
            wanted |= {name: list(queue[attribute]) for name, attribute in MANY.items() if queue[attribute]}
            answer = self._database.insertJob(next(self._ids), wanted, self._rng.randint(1, 9))
            times.append(time.perf_counter() - before)
            assert answer["OK"], answer
        return {"seconds": time.perf_counter() - began, "times": times, "done": [], "nothing": 0}


def request(pilot):
    asked = {
        "Site": pilot["site"],
        "GridCE": pilot["ce"],
        "Platform": pilot["platform"],
        "CPUTime": pilot["cpu_time"],
    }
    asked["Tag"] = list(pilot["tags"])
    if pilot["job_types"]:
        asked["JobType"] = list(pilot["job_types"])
    if pilot["group"]:
        asked |= {"Owner": pilot["owner"], "OwnerGroup": pilot["group"]}
    return asked


if __name__ == "__main__":
    main()
