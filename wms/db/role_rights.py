"""The rights of each Postgres role, by table: `select`, `insert`, `delete`, and `update` of the named columns. Nothing else is granted.

`tests/db/test_roles.py` compares these rights with what the processes of each role use, and reports rights that are missing or not needed.
"""

from collections.abc import Mapping
from typing import Final

TOOLS: Final = "tools"
"""The role of operators' tools, which are commands and no service: `wms status`, `wms audit`, `wms dead-letters`."""

COMMON: Final[Mapping[str, str]] = {
    "batch_in_hand": "select insert delete update(deaths first_offset instance_id last_offset noted_at)",
    "consumer_offset": "select insert update(moved_at next_offset)",
    "dead_letter": "select insert update(error log_gap_id replay_requested_at replayed_at)",
    "incarnation": "select",
    "log_gap": "select insert",
    "outbox": "select insert delete update(due_at)",
    "parked_message": "select insert delete update(deaths taken_alone taken_by)",
    "revocation": "select",
    "revocation_revision": "select",
    "schema_migration": "select",
    "service_instance": "select insert delete update(consumers health heartbeat_at)",
}
"""Rights of every service, by table: to move offsets, send outbox messages, store dead letters and heartbeats, and read revocations."""

OWN: Final[Mapping[str, Mapping[str, str]]] = {
    "job_manager": {
        "ad": "select delete",
        "agreement": "select update(changed_at)",
        "attempt": "select",
        "audit_record": "select insert delete",
        "block": "select insert delete",
        "broker_order": "select insert delete update(asked_at due_at seq tries)",
        "canary": "select insert delete",
        "ce_door": "select",
        "ce_move": "select insert delete",
        "ce_plan": "select delete",
        "ce_state": "select insert update(reason relapses said_by since site state until)",
        "consumer_offset": "delete",
        "dead_letter": "delete",
        "dependency": "select insert delete update(failed jobs pending)",
        "description": "select insert delete update(body)",
        "ended_attempt": "select insert delete",
        "forgetting": "select insert delete",
        "forgotten": "select insert update(before)",
        "incarnation": "insert update(age cluster_id known_until marked_at)",
        "job": (
            "select insert delete update(attempts brokered changed_at description_id event_seq "
            "max_attempts pilot_id reason site state stop_requested tq_id unstarted "
            "user_priority)"
        ),
        "job_event": "select",
        "job_move": "select insert delete",
        "job_record": "select",
        "lease": "select delete update(accepted_at expires_at phase staging start_seq started_at usage_points)",
        "limit_counter": "select update(allowed_until awaited running)",
        "limit_rule": "select insert delete update(most per_second said_at said_by)",
        "operator_order": "select insert delete",
        "owner_usage": "select insert update(at slot_seconds)",
        "run_time": "select insert update(changed_at mean spread)",
        "parameter": "select insert delete update(chunk description_id)",
        "pilot": (
            "select delete update(busy cause ended_at free_memory_mb isolation jobs_done node reason "
            "refused_orders seen_at slots started_at state token_until)"
        ),
        "pilot_order": "select insert delete update(withdrawn_at)",
        "placement": "select delete update(changed_at reason reason_text state)",
        "prediction": "select",
        "queue_served": "select",
        "queue_state": "select",
        "queue_watch": "select",
        "revocation": "insert delete update(expires_at reason revoked_at revoked_by)",
        "revocation_revision": "update(number)",
        "sandbox_claim": "select insert delete update(claimed_at)",
        "share": (
            "select insert delete update(background job_share job_sharing private_pilots said_at said_by)"
        ),
        "skip_order": "select insert delete update(attempts claimed_until)",
        "stop_order": "select insert delete update(reason source)",
        "submission": "select insert delete",
        "sweep": "select insert delete update(name)",
        "task_queue": "select insert delete update(empty_since removed_at)",
        "transfer": "insert",
        "unused_part": "select insert",
        "usage_hour": "select insert",
        "usage_rollup": "select update(closed_until)",
        "wait_reason": "select insert delete update(chance code since text)",
        "waiting": "select",
        "waiting_room": "select insert update(counted_at room)",
    },
    "matcher": {
        "ad": (
            "select insert delete update(advertised_at attributes digest element expires_at "
            "expressions rank received_at requirements withdrawn_at)"
        ),
        "block": "select insert delete",
        "ce_door": "select",
        "ce_state": "select",
        "description": "select",
        "job": "select insert update(attempts changed_at epoch event_seq pilot_id reason site state)",
        "job_move": "insert",
        "lease": "select insert update(counted)",
        "limit_counter": (
            "select insert update(advertised_at allowed allowed_until awaited idle matched "
            "refilled_at running sent tokens unseen)"
        ),
        "limit_rule": "select insert delete",
        "owner_usage": "select",
        "parameter": "select",
        "pilot": "select",
        "placement": "select",
        "queue_served": "select insert update(at faded_count)",
        "queue_state": "select insert delete update(levels waiting weight)",
        "queue_watch": "select insert update(at law matcher)",
        "run_time": "select",
        "service_instance": "update(host pid started_at version)",
        "share": "select insert delete",
        "sweep": "select update(name)",
        "task_queue": "select",
        "waiting": "select",
    },
    "pilot_submitter": {
        "ad": "select update(pilot_seconds)",
        "agreement": "select",
        "audit_record": "insert",
        "broker_order": "select insert delete update(asked_at due_at seq tries)",
        "canary": "select update(ended_at outcome)",
        "ce_door": "select insert delete update(forwards terms)",
        "ce_move": "insert",
        "ce_plan": "select insert delete update(decided_at decision)",
        "ce_state": "select insert update(reason relapses said_by since site state until)",
        "description": "select",
        "ended_attempt": "select",
        "job": (
            "select update(attempts changed_at event_seq pilot_id reason site state stop_requested unstarted)"
        ),
        "job_move": "insert",
        "lease": "select update(expires_at)",
        "limit_counter": "select update(sent)",
        "limit_rule": "select",
        "pilot": (
            "select insert update(cancelled_at cause ended_at output reason reference renewed_at state token_until "
            "word word_at)"
        ),
        "pilot_order": "select update(held)",
        "pilot_secret": "select insert update(exchange_id exchanged_at refusals)",
        "placement": "select update(changed_at pilot_id reason reason_text state taken_by taken_until)",
        "queue_state": "select",
        "queue_watch": "select",
        "revocation": "select insert",
        "revocation_revision": "select update(number)",
        "share": "select",
        "stop_order": "select delete",
        "system_mark": "select",
        "task_queue": "select update(empty_since removed_at)",
        "waiting": "select",
        "waiting_room": "select update(counted_at room)",
    },
    "agreement": {
        "ad": "select",
        "agreement": (
            "select insert delete update(changed_at code ends_at expires_at is_held reservation "
            "start_at state text tries used_at)"
        ),
        "agreement_element": "select insert update(cpus held_until holder template told_until turns)",
        "ce_door": "select",
        "job": "select",
        "lease": "select",
        "placement": "select",
    },
    "resource_broker": {
        "ad": "select",
        "agreement": "select update(changed_at job_id)",
        "agreement_element": "select",
        "broker_order": "select insert delete update(asked_at due_at seq tries)",
        "ce_door": "select",
        "ce_state": "select",
        "description": "select",
        "ended_attempt": "select",
        "job": (
            "select update(attempts changed_at event_seq pilot_id reason site state stop_requested unstarted)"
        ),
        "job_move": "insert",
        "job_record": (
            "select insert update(asked changed_at claimed_by claimed_until due_at phase "
            "ranked_at ranking reason reason_text round seq since tries)"
        ),
        "lease": "select",
        "pilot": "select",
        "placement": "select insert update(changed_at reason reason_text state)",
        "prediction": "select insert delete update(actual scored_at)",
        "stop_order": "select insert delete update(reason source)",
        "task_queue": "select update(empty_since removed_at)",
        "transfer": "select delete",
        "waiting_room": "select update(counted_at room)",
    },
    "gateway": {"sandbox_claim": "select insert update(claimed_at)"},
}
"""Further rights of each service, by role and table.

Postgres lets a role lock a row only if it may update a column. So roles that only lock rows may update one: `name` of `sweep`, which a
trigger keeps unchanged, and for the job manager `changed_at` of `agreement`.
"""

OF_TOOLS: Final[Mapping[str, str]] = {
    "ad": "select",
    "agreement": "select",
    "agreement_element": "select",
    "attempt": "select",
    "audit_record": "select",
    "batch_in_hand": "select",
    "block": "select",
    "broker_order": "select",
    "canary": "select",
    "ce_door": "select",
    "ce_move": "select",
    "ce_plan": "select",
    "ce_state": "select",
    "consumer_offset": "select update(moved_at next_offset)",
    "dead_letter": "select insert delete update(replay_requested_at replayed_at)",
    "dependency": "select",
    "description": "select",
    "ended_attempt": "select",
    "forgetting": "select",
    "forgotten": "select",
    "job": "select",
    "job_event": "select",
    "job_move": "select",
    "job_record": "select",
    "lease": "select",
    "limit_counter": "select",
    "limit_rule": "select",
    "incarnation": "select",
    "log_gap": "select update(acknowledged_at)",
    "operator_order": "select insert",
    "outbox": "select insert",
    "owner_usage": "select",
    "parameter": "select",
    "parked_message": "select",
    "pilot": "select",
    "pilot_order": "select",
    "placement": "select",
    "prediction": "select",
    "queue_served": "select",
    "queue_state": "select",
    "queue_watch": "select",
    "revocation": "select",
    "revocation_revision": "select",
    "schema_migration": "select",
    "service_instance": "select",
    "share": "select",
    "skip_order": "select",
    "stop_order": "select",
    "submission": "select",
    "sweep": "select",
    "system_mark": "select",
    "task_queue": "select",
    "transfer": "select",
    "unused_part": "select",
    "usage_hour": "select",
    "usage_rollup": "select",
    "wait_reason": "select",
    "waiting": "select",
    "waiting_room": "select",
}
"""Rights of operators' tools, by table: to read everything, replay and delete dead letters, skip messages, and log who ordered that."""

SEQUENCES: Final[Mapping[str, Mapping[str, str]]] = {
    "job_manager": {"job_id_seq": "select update", "limit_generation": "select"},
    "matcher": {"limit_generation": "select update"},
    "pilot_submitter": {"limit_generation": "select"},
}
"""Rights on sequences, by role and sequence: `select` to read the last number, `update` to draw or set a number."""

GUARDED: Final = ("make_partitions(integer)", "drop_partitions()")
"""Functions that run with the rights of the schema's owner. All others run with the rights of the caller, and every role may call them."""

EXECUTED: Final[Mapping[str, tuple[str, ...]]] = {"job_manager": GUARDED}
"""The functions of `GUARDED` that each role may call."""

SERVER_ROLES: Final[Mapping[str, tuple[str, ...]]] = {TOOLS: ("pg_read_all_stats", "pg_signal_backend")}
"""Predefined Postgres roles that a role is a member of: to count connections, and to end a session that blocks the skip of a message."""
