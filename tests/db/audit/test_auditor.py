"""The auditor passes what the services wrote, and each planted fault is found by the one check that is for it."""

import subprocess
import sys

import asyncpg
import pytest

from wms.audit import AuditReport, audit
from wms.audit.auditor import examine, rules


def broken(report: AuditReport) -> list[str]:
    return [check.name for check in report.checks if check.violations]


async def test_a_clean_database_passes_and_every_check_had_something_to_check(lived: str) -> None:
    report = await audit(lived)
    assert report.ok, report.text(brief=True)
    idle = {check.name for check in report.checks if not check.checked}
    # The tests' world has no broker: no offsets are kept.
    assert idle == {
        "no offset is before the beginning, and no dead letter ahead of its consumer",
        "every dead letter says what was wrong, and is tried again when that is ordered",
        "nothing waits aside for an hour while it is served",
        "what waits aside is behind its consumer, its owner's, and in one place",
        "an operator has looked at every gap in a log",
    }
    assert {check.invariant for check in report.checks} >= {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}


async def test_an_empty_database_passes(database: str) -> None:
    report = await audit(database)
    assert report.ok, report.text(brief=True)


# What each plants, into copies of a database in which everything is right; no two checks find the same.
FREE = """set local session_replication_role = replica;
          alter table job drop constraint job_max_attempts_check;
          alter table limit_counter drop constraint limit_counter_sent_within;
          create table job_event_table as table job_event; drop view job_event;
          alter table job_event_table rename to job_event;
          create table attempt_table as table attempt; drop view attempt;
          alter table attempt_table rename to attempt;
          alter table description alter column body type jsonb using body::jsonb;
          -- All happened just now, however long ago that is on a slow machine.
          update outbox set due_at = now();
          update lease set expires_at = now() + interval '1 min';"""


RUNNING = "(select min(job_id) from job where state = 'Running')"


WAITING = "(select max(job_id) from job where state = 'Waiting' and epoch = 0 and array_index is null and not brokered)"


DONE = "(select min(job_id) from job where state = 'Done')"


COUNTED = "(select job_id from lease where counted is not null)"


BEATING = """insert into service_instance (instance_id, service, consumers, host, pid, version, started_at)
             values ('i', 'job_manager', '{}', 'h', 1, '1', now() - interval '1 h');"""


SERVED = (
    BEATING.replace("job_manager", "agreement")
    + "update agreement_element set told_until = now() + interval '1 h';"
)


PARKED = """insert into parked_message (cluster_id, consumer, topic, partition, message_offset, owner, payload, parked_at)
            values ('c', 'x', 't', 0, 5, 'ann', '', now() - interval '2 h');"""


BURIED = """insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, payload, error, replay_requested_at)
            values ('x', 'c', 't', 0, 5, '', 'why', now() - interval '1 h');"""


SERVING = """insert into service_instance (instance_id, service, consumers, host, pid, version, started_at)
             values ('i', 's', '{x}', 'h', 1, '1', now() - interval '2 h');"""


PLANTED = {
    "a limit's counter is the number of leases that it counts": [
        "update limit_counter set running = running + 1",
        f"update lease set counted = null where job_id = {COUNTED}",
        f"update lease set counted = counted || 99::bigint where job_id = {COUNTED}",
    ],
    "no element got more jobs or pilots since its ad than the ad lets come": [
        "update limit_counter set allowed = 1, advertised_at = '-infinity' where allowed is not null",
        """insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, state)
           select 'p-more-' || n, 'A', 'ce', 'lhcb', 'local', 1, 'Running' from generate_series(1, 1001) n""",
    ],
    "acknowledged submissions are there whole, their owner's": [
        f"delete from job where job_id = {WAITING}; delete from job_event where job_id not in (select job_id from job)",
    ],
    "every job belongs to one submission": [
        "delete from submission where owner = 'bob'",
        """insert into submission (owner, command_id, body_digest, ids)
           select owner, 'again', '', '[[2, 3]]' from submission where command_id = 'a'""",
    ],
    "a sweep's jobs are in its blocks or have rows, each once": [
        "update job set array_index = array_index + 1 where array_index = 12",
        "update job set description_id = (select description_id from job where job_id = 10) where array_index = 12",
    ],
    "the jobs of a block have one history, by the state table, and are where it ends": [
        "update block set state = 'Killed' where state = 'Held'",
        "update block set event_seq = 4 where state = 'Held'",
        """update block set history = jsonb_set(history, '{1,event}', '"release"') where state = 'Waiting'""",
        """update block set history = jsonb_set(history, '{1,before}', '"Held"') where state = 'Waiting'""",
        "update block set history = history - 0 where state = 'Waiting'",
        "update block set history = '[]' where state = 'Waiting'",
    ],
    "histories are numbered from 1 without a gap": [
        f"update job_event set seq = 9 where seq = 2 and job_id = {WAITING}; update job set event_seq = 9 where job_id = {WAITING}",
        # One that was never written.
        f"update job_event set seq = seq + 1 where seq >= 2 and job_id = {WAITING}; update job set event_seq = 3 where job_id = {WAITING}",
    ],
    "every move is one of the state table": [
        f"""update job_event set event = 'resume' where event = 'enqueue' and job_id = {WAITING}""",
        # Ended states stay ended.
        f"""insert into job_event (job_id, seq, before, event, state, epoch, reason, source)
                select job_id, event_seq + 1, 'Done', 'hold', 'Held', epoch, 'HELD_BY_USER', 'x' from job where job_id = {DONE};
            update job set state = 'Held', reason = 'HELD_BY_USER', event_seq = event_seq + 1 where job_id = {DONE}""",
    ],
    "every move begins where the one before it ended": [
        f"update job_event set before = 'Checking' where event = 'enqueue' and job_id = {WAITING}",
    ],
    "every job is where its history ends": [
        f"update job set state = 'Staging' where job_id = {WAITING}",
        f"update job set event_seq = event_seq + 1 where job_id = {DONE}",
        """insert into job_event (job_id, seq, event, state, epoch, source)
           values (9999, 1, 'receive', 'Received', 0, 'x')""",
    ],
    "no job has two leases": [
        f"""alter table lease drop constraint lease_pkey;
            insert into lease select * from lease where job_id = {RUNNING}""",
    ],
    "a job has a lease exactly while a pilot has it": [
        f"delete from lease where job_id = {RUNNING}; update attempt set ended_at = now(), outcome = 'lost', cpu_user_seconds = 0, cpu_system_seconds = 0, wall_seconds = 0 where ended_at is null and job_id = {RUNNING}",
    ],
    "a lease is of its job's epoch and pilot": [
        f"update job set pilot_id = 'p-9' where job_id = {RUNNING}",
    ],
    "epochs count the matches of a job": [
        f"""update job_event set epoch = 1 where event = 'enqueue' and seq = 2 and job_id = {WAITING};
            update job set epoch = 1 where job_id = {WAITING}""",
    ],
    "every match is an attempt of the same epoch and pilot, and every attempt a match": [
        f"update job_event set text = 'p-9' where event = 'match' and job_id = {DONE}",
    ],
    "an attempt is open exactly while its lease is there": [
        f"""update attempt set pilot_id = 'p-2' where job_id = {RUNNING} and ended_at is null;
            update job_event e set text = 'p-2' from attempt a
            where event = 'match' and e.job_id = {RUNNING} and (a.job_id, a.epoch) = (e.job_id, e.epoch) and a.ended_at is null""",
    ],
    "an attempt ends once, as its job moved under that epoch": [
        f"update attempt set outcome = 'failed' where job_id = {DONE}",
    ],
    "nothing starts or ends by its payload before its lease is accepted": [
        """update attempt set started_at = now(), accepted_at = null where outcome = 'withdrawn'""",
    ],
    "attempts of one job follow each other": [
        "update attempt set offered_at = offered_at - interval '1 h' where epoch = 2",
    ],
    "what ended by its payload is started again only after a reschedule that was ordered, or as often as its description says": [
        """update attempt set outcome = 'failed', reason = 'EXIT_CODE'
           where outcome = 'lost' and epoch = 1 and reason = 'LEASE_EXPIRED'""",
        """update attempt set outcome = 'failed' where outcome = 'lost' and epoch = 1 and reason = 'LEASE_EXPIRED';
           update job_event set event = 'fail', state = 'Failed' where event = 'reschedule' and epoch = 1
               and reason = 'LEASE_EXPIRED';
           update job_event n set before = 'Failed', event = 'reschedule', state = 'Rescheduled'
               from job_event p where p.job_id = n.job_id and p.seq = n.seq - 1 and p.state = 'Failed'
                                  and p.reason = 'LEASE_EXPIRED';
           update job_event set seq = -seq where job_id = (select job_id from job_event where reason = 'LEASE_EXPIRED')
               and seq > (select seq from job_event where reason = 'LEASE_EXPIRED') + 1;
           update job_event set seq = 1 - seq where seq < 0;
           insert into job_event (job_id, seq, before, event, state, epoch, source)
               select job_id, seq + 2, 'Rescheduled', 'enqueue', 'Waiting', 1, 'x' from job_event where reason = 'LEASE_EXPIRED';
           update job j set event_seq = event_seq + 1 from job_event e where e.job_id = j.job_id and e.reason = 'LEASE_EXPIRED'
        """,
    ],
    "attempts are counted and bounded": [
        f"update job set attempts = 2 where job_id = {DONE}",
        f"update job set max_attempts = 0 where job_id = {DONE}",
    ],
    "waiting jobs are in a queue that matchers know": [
        f"update task_queue set removed_at = now() where tq_id = (select tq_id from job where job_id = {WAITING})",
    ],
    "a task queue's key is that of its requirements": [
        "update task_queue set key = sha256(key) where owner = 'bob'",
        "update task_queue set cpu_segment = 500 where owner = 'bob'",
    ],
    "jobs are in the queue of what they ask": [
        """update description set body = body || '{"memory_mb": 10}' where body -> 'tags' is not null""",
        f"update job set tq_id = (select tq_id from job where job_id = {DONE}) where job_id = 8",
    ],
    "a job is at no place that it may not be": [
        f"""update task_queue set requirements = requirements || '{{"sites": ["B"]}}',
                key = sha256(convert_to(replace(q.text, '"job_types"', '"sites":["b"],"job_types"'), 'UTF8'))
            from (select tq_id as id, format('{{"owner":"%s","owner_group":"%s","vo":"%s","setup":"%s","cpu_segment":%s,"job_types":["User"]}}',
                         owner, owner_group, vo, requirements ->> 'setup', cpu_segment) as text from task_queue) q
            where q.id = tq_id and tq_id = (select tq_id from job where job_id = {DONE});
            update description set body = body || '{{"sites": ["B"]}}'
            where description_id in (select description_id from job where tq_id = (select tq_id from job where job_id = {DONE}))""",
    ],
    "an element is as its moves left it": [
        "update ce_state set state = 'draining' where site = 'A'",
        "update ce_state set reason = 'another' where site = 'A'",
        "update ce_state set since = since - interval '1 s' where site = 'A'",
        "update ce_state set state = 'banned' where site = 'B'",
        "delete from ce_state where site = 'A'",
    ],
    "an element's moves follow from each other": [
        "delete from ce_move where event = 'probe'",
        "delete from ce_move where event = 'eat'",
        "update ce_move set event = 'release' where event = 'relapse'",
    ],
    "attempts are made by pilots we sent there": [
        "update pilot set ce = 'other' where pilot_id = 'p-2'",
        "delete from pilot where pilot_id = 'p-2'",
    ],
    "no offset is before the beginning, and no dead letter ahead of its consumer": [
        "insert into consumer_offset values ('c', 'x', 't', 0, -1)",
        """insert into consumer_offset values ('c', 'x', 't', 0, 5);
           insert into dead_letter (consumer, cluster_id, topic, partition, message_offset, payload, error)
           values ('x', 'c', 't', 0, 5, '', 'why')""",
    ],
    "no message waits for ever while services run": [
        BEATING + "update outbox set due_at = now() - interval '1 h'",
    ],
    "an attempt is charged once, when it ends, and for no less than nothing": [
        f"update attempt set cpu_user_seconds = -1 where job_id = {DONE}",
        f"update attempt set wall_seconds = null where job_id = {DONE}",
        "update attempt set cpu_user_seconds = 3 where ended_at is null",
    ],
    "the usage of an hour is that of the attempts that ended in it": [
        "update usage_hour set wall_seconds = wall_seconds + 1",
        "update usage_hour set cpu_seconds = cpu_seconds + 1",
        "update usage_hour set attempts = attempts + 1",
        "delete from usage_hour",
    ],
    "what never began is charged no time": [
        "update attempt set cpu_user_seconds = 3 where outcome = 'withdrawn'",
        "update attempt set wall_seconds = 3 where outcome = 'lost' and started_at is null and epoch = 2",
    ],
    "a job fails of too many attempts only after so many that began": [
        "update job_event set reason = 'TOO_MANY_ATTEMPTS' where event = 'fail'; update job set max_attempts = 9",
    ],
    "what is lost ten times before it begins is held": [
        "update job set unstarted = unstarted + 1 where reason = 'NEVER_STARTED'",
        f"update job set unstarted = 1 where job_id = {DONE}",
        """update job_event set reason = 'HELD_BY_USER' where reason = 'NEVER_STARTED';
           update job set reason = 'HELD_BY_USER' where reason = 'NEVER_STARTED'""",
    ],
    "a held job says why": [
        "update job set reason = '' where reason = 'HELD_BY_USER'",
        """update job set reason = '' where reason = 'HELD_BY_USER';
           update job_event set reason = '' where reason = 'HELD_BY_USER'""",
        "update block set reason = '' where state = 'Held'",
    ],
    "no job waits for predecessors that have all ended as they must, and none starts before": [
        BEATING
        + f"""update job set changed_at = now() - interval '1 h' where job_id = {DONE};
              update dependency set made_at = now() - interval '1 h',
                  predecessors = int8multirange(int8range({DONE}, {DONE}, '[]'))""",
        "delete from dependency",
        f"update dependency set jobs = jobs + int8multirange(int8range({WAITING}, {WAITING}, '[]'))",
        """update dependency set jobs = jobs + (
               select int8multirange(int8range(first, last, '[]')) from block where state = 'Waiting' limit 1)""",
    ],
    "queues whose jobs wait are told why": [
        BEATING
        + """insert into queue_watch (matcher, law) values ('m', 'dirac');
                     update job set changed_at = now() - interval '1 h'""",
    ],
    "no pilot holds more than its slots and what it may fetch ahead": [
        # Sent with so few that what it holds is over.
        "update pilot set sent_slots = -1 where pilot_id = 'p-3'",
    ],
    "a pilot that told its end holds nothing": [
        """update pilot set state = 'Done', seen_at = now() - interval '1 h', ended_at = now() - interval '1 h'
           where pilot_id = 'p-3'""",
    ],
    "private pilots have no other group's jobs": [
        "update pilot set owner_group = 'other' where pilot_id = 'p-3'",
    ],
    "what waits aside is behind its consumer, its owner's, and in one place": [
        PARKED,
        "insert into consumer_offset values ('c', 'x', 't', 0, 6);"
        + PARKED
        + "update parked_message set owner = ''",
        "insert into consumer_offset values ('c', 'x', 't', 0, 6);" + PARKED + BURIED,
    ],
    "an operator has looked at every gap in a log": [
        """insert into log_gap (cluster_id, consumer, topic, partition, cause, first_offset)
           values ('c', 'x', 't', 0, 'begun anew', 5)""",
    ],
    "nothing waits aside for an hour while it is served": [
        "insert into consumer_offset values ('c', 'x', 't', 0, 6);" + PARKED + SERVING,
    ],
    "every dead letter says what was wrong, and is tried again when that is ordered": [
        "insert into consumer_offset values ('c', 'x', 't', 0, 6);"
        + BURIED
        + "update dead_letter set error = ''",
        "insert into consumer_offset values ('c', 'x', 't', 0, 6);" + BURIED + SERVING,
    ],
    "brokered jobs have queues of their own": [
        f"update job set brokered = true where job_id = {DONE}",
        "update job set brokered = false where state = 'Checking'",
    ],
    "the broker was asked to place every brokered job that is Checking": [
        "delete from broker_order",
        "update broker_order set seq = 99",
        f"insert into broker_order (job_id, seq) values ({DONE}, 9)",
        BEATING + "update broker_order set due_at = now() - interval '1 h'",
    ],
    "a brokered job waits, or is with a pilot, exactly under an open placement": [
        "update placement set state = 'Failed'",
        "update placement set state = 'Started'",
    ],
    "a bound pilot is of one placement of its job, and has no other job": [
        "update placement set pilot_id = null",
        f"update pilot set job_id = {DONE} where job_id is not null",
        f"""update pilot set job_id = {DONE} where pilot_id = 'p-1';
            insert into placement (job_id, attempt, rank, site, ce, dispatch, state, pilot_id)
            values ({DONE}, 1, 1, 'A', 'ce', 'pilot', 'Ended', 'p-1')""",
    ],
    "no placement outlives its latest start": [
        BEATING.replace("job_manager", "pilot_submitter")
        + "update placement set latest_start = now() - interval '1 h'",
    ],
    "co-allocated jobs wait for slots that start together, at different elements": [
        "update placement set start_at = start_at + interval '1 min' where site = 'B'",
        "update placement set site = 'A'",
    ],
    "no co-allocated job waits for its slot without the others": [
        BEATING.replace("job_manager", "resource_broker")
        + "update job set changed_at = now() - interval '1 h' where state = 'Held' and brokered",
    ],
    "no agreement is alive past its time": [
        SERVED + "update agreement set expires_at = now() - interval '1 h' where state = 'Temporary'",
        SERVED
        + """update agreement set start_at = now() - interval '2 h', ends_at = now() - interval '1 h'
             where state = 'Confirmed'""",
    ],
    "a calendar grants no more CPUs at a time than its element has": [
        "update agreement set cpus = 5 where agreement_id = 'a-1'",
        "update agreement_element set cpus = 3",
    ],
    "the identity that reserved is that of the job": [
        "update agreement set vo = 'other' where state = 'Confirmed'",
    ],
    "a stop is asked only of a job that a pilot has": [
        f"update job set stop_requested = 'kill' where job_id = {DONE}",
    ],
    "what its user had killed ends Killed": [
        f"update job_event set reason = 'KILLED_BY_USER' where event = 'finish' and job_id = {DONE}",
    ],
    "leases that have run out are taken back while services run": [
        BEATING + f"update lease set expires_at = now() - interval '1 h' where job_id = {RUNNING}",
    ],
    "owner, group and VO are those of the queue, for ever": [
        f"update job set owner_group = 'other' where job_id = {WAITING}",
        f"update job set vo = 'other' where job_id = {DONE}",
        "alter table job disable trigger job_owner_is_for_ever",
        "update sweep set owner_group = 'other'",
        "alter table sweep disable trigger sweep_is_for_ever",
    ],
}


ALSO: dict[str, set[str]] = {
    # What is planted here cannot be had without breaking these too.
    "acknowledged submissions are there whole, their owner's": set(),
    "no job has two leases": set(),
    "a job has a lease exactly while a pilot has it": {
        "an attempt ends once, as its job moved under that epoch",
    },
}


def test_every_check_has_a_planted_fault() -> None:
    named = {rule.name for rule in rules()} | {
        "a task queue's key is that of its requirements",
        "jobs are in the queue of what they ask",
        "a job is at no place that it may not be",
    }
    assert named == PLANTED.keys()


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, faults in PLANTED.items() for fault in faults]
)
async def test_a_planted_fault_is_found_by_its_check_alone(lived: str, name: str, fault: str) -> None:
    report = await with_fault(lived, fault)
    assert set(broken(report)) == {name} | ALSO.get(name, set()), report.text(brief=True)


BUSY = "update pilot set sent_slots = 0, jobs_done = 0 where pilot_id = 'p-3';"


MATCHING = """insert into service_instance (instance_id, service, consumers, host, pid, version, health)
              values ('m-%s', 'matcher', '{}', 'h', 1, '1', '{"offers_open": %s}');"""


@pytest.mark.parametrize(
    ("told", "given", "broken_rules"),
    [
        ((), None, 0),
        ((), 0, 1),
        ((0,), None, 1),
        ((1_000,), None, 0),
        ((0, 1_000), None, 0),
        ((0,), 1_000, 0),
        ((1_000,), 0, 1),
    ],
)
async def test_pilots_may_have_as_many_offers_open_as_matchers_are_configured_to_make(
    lived: str, told: tuple[int, ...], given: int | None, broken_rules: int
) -> None:
    fault = BUSY + "".join(MATCHING % (number, most) for number, most in enumerate(told))
    report = await with_fault(lived, fault, offers_open=given)
    rule = "no pilot holds more than its slots and what it may fetch ahead"
    assert broken(report) == [rule] * broken_rules, report.text(brief=True)


async def with_fault(url: str, fault: str, offers_open: int | None = None) -> AuditReport:
    """Plant it, audit, and let it go with the connection."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("begin")
        await connection.execute(FREE + fault)
        report = await examine(connection, offers_open=offers_open)
    finally:
        await connection.close()
    return report


def test_its_table_is_written_out_by_itself_and_says_the_same() -> None:
    from wms.audit.rules import legal_moves
    from wms.job.state import FIRST, TRANSITIONS

    theirs = {f"{before}/{e}/{after}" for before, row in TRANSITIONS.items() for e, after in row.items()}
    assert set(legal_moves()) == theirs | {f"/receive/{state}" for state in FIRST}


def run(url: str, *more: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "wms.audit", "--postgres", url, *more],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
