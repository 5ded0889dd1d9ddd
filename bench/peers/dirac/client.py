"""One client of DIRAC's TaskQueueDB. Run by DIRAC's Python, not ours: `client.py ACTION FOLDER INDEX SECONDS CLIENTS`.

It says "ready", waits for a line, works for that long, and prints what it did as one JSON object.
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
    action, folder, index, seconds, clients = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])
    database = open_database(folder)
    if action == "load":
        print(json.dumps(load(database, folder)))
        return
    work = {"match": match, "insert": insert}[action]
    work(database, folder, index, clients, 0.0)
    print("ready", flush=True)
    sys.stdin.readline()
    before = time.process_time()
    found = work(database, folder, index, clients, seconds)
    print(json.dumps({**found, "cpu": time.process_time() - before}))


def open_database(folder):
    os.environ["DIRACSYSCONFIG"] = str(folder / "dirac.cfg")
    from DIRAC import gConfig, gLogger

    gLogger.setLevel("ERROR")
    loaded = gConfig.loadFile(str(folder / "dirac.cfg"))
    assert loaded["OK"], loaded
    from DIRAC.WorkloadManagementSystem.DB.TaskQueueDB import TaskQueueDB

    return TaskQueueDB(parentLogger=gLogger)


def load(_, folder):
    """Fill the tables, which DIRAC has just made, from files."""
    import MySQLdb

    access = json.loads((folder / "access.json").read_text())
    connection = MySQLdb.connect(**access, local_infile=1)
    cursor = connection.cursor()
    cursor.execute("set foreign_key_checks = 0")
    for table in ("tq_TaskQueues", *(f"tq_TQTo{name}" for name in MANY), "tq_Jobs"):
        cursor.execute(
            f"load data local infile '{folder / table}.csv' into table {table} fields terminated by ','"
        )
        connection.commit()
        cursor.execute(f"analyze table {table}")
        cursor.fetchall()
    cursor.execute("select count(*) from tq_Jobs")
    return {"jobs": cursor.fetchone()[0]}


def match(database, folder, index, clients, seconds):
    """Ask for one job after another. Without time: once, to have the connection and the caches."""
    pilots = json.loads((folder / "pilots.json").read_text())
    mine = range(index, len(pilots), clients)
    requests = [request(pilots[n]) for n in mine]
    matches, nothing, times = [], 0, []
    end = time.perf_counter() + seconds
    began = time.perf_counter()
    for n, asked in zip(mine, requests, strict=True):
        before = time.perf_counter()
        if before >= end:
            if not seconds:
                database.matchAndGetTaskQueue(asked)
            break
        answer = database.matchAndGetJob(asked)
        times.append(time.perf_counter() - before)
        assert answer["OK"], answer
        if answer["Value"]["matchFound"]:
            matches.append((answer["Value"]["jobId"], n))
        else:
            nothing += 1
    return {"seconds": time.perf_counter() - began, "times": times, "done": matches, "nothing": nothing}


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


def insert(database, folder, index, clients, seconds):
    """Insert one job after another into queues that are there."""
    queues = json.loads((folder / "queues.json").read_text())
    rng = random.Random(index)
    times = []
    ids = itertools.count(100_000_000 + clients * 10_000_000 + index * 1_000_000)
    began = time.perf_counter()
    end = began + seconds
    while (before := time.perf_counter()) < end:
        queue = rng.choice(queues)
        wanted = {"Owner": queue["owner"], "OwnerGroup": queue["group"], "CPUTime": queue["cpu_time"]}
        wanted |= {name: list(queue[attribute]) for name, attribute in MANY.items() if queue[attribute]}
        answer = database.insertJob(next(ids), wanted, rng.randint(1, 9))
        times.append(time.perf_counter() - before)
        assert answer["OK"], answer
    return {"seconds": time.perf_counter() - began, "times": times, "done": [], "nothing": 0}


if __name__ == "__main__":
    main()
