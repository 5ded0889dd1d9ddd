"""The reasons for a job's state: codes that programs can test, each with advice for the user.

A reason is a code and a text for people. The meaning of a code never changes; a new meaning gets a new code.
"""

from enum import StrEnum

import msgspec


class Code(StrEnum):
    """The codes of reasons in job histories, in attempts and in refused orders."""

    ACCEPTED = "ACCEPTED"
    QUEUED = "QUEUED"
    OFFERED = "OFFERED"
    STARTED = "STARTED"
    DONE = "DONE"
    OUTPUT_MISSING = "OUTPUT_MISSING"
    EXIT_CODE = "EXIT_CODE"
    SIGNAL = "SIGNAL"
    NOT_STARTED = "NOT_STARTED"
    CPU_LIMIT = "CPU_LIMIT"
    WALL_LIMIT = "WALL_LIMIT"
    MEMORY_LIMIT = "MEMORY_LIMIT"
    DISK_LIMIT = "DISK_LIMIT"
    PROCESS_LIMIT = "PROCESS_LIMIT"
    INPUT_FAILED = "INPUT_FAILED"
    FILE_UNAVAILABLE = "FILE_UNAVAILABLE"
    FILE_CORRUPT = "FILE_CORRUPT"
    URL_REFUSED = "URL_REFUSED"
    OUTPUT_FAILED = "OUTPUT_FAILED"
    AGENT_ERROR = "AGENT_ERROR"
    PILOT_STOPPED = "PILOT_STOPPED"
    OFFER_EXPIRED = "OFFER_EXPIRED"
    OFFER_DECLINED = "OFFER_DECLINED"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    PILOT_DIED = "PILOT_DIED"
    NODE_LOST = "NODE_LOST"
    PILOT_FORGOTTEN = "PILOT_FORGOTTEN"
    TOO_MANY_ATTEMPTS = "TOO_MANY_ATTEMPTS"
    NEVER_STARTED = "NEVER_STARTED"
    TOO_LARGE = "TOO_LARGE"
    TO_BROKER = "TO_BROKER"
    PLACED = "PLACED"
    PLACEMENT_FAILED = "PLACEMENT_FAILED"
    NOT_PLACED = "NOT_PLACED"
    TOO_LATE_TO_START = "TOO_LATE_TO_START"
    INDEX_REFUSED = "INDEX_REFUSED"
    BROKER_FAULT = "BROKER_FAULT"
    COALLOCATION_BROKEN = "COALLOCATION_BROKEN"
    DEPENDENCY = "DEPENDENCY"
    DEPENDENCY_FAILED = "DEPENDENCY_FAILED"
    DEPENDENCY_MET = "DEPENDENCY_MET"
    KILLED_BY_USER = "KILLED_BY_USER"
    HELD_BY_USER = "HELD_BY_USER"
    RELEASED = "RELEASED"
    RESCHEDULED_BY_USER = "RESCHEDULED_BY_USER"
    EDITED_BY_USER = "EDITED_BY_USER"
    REMOVED_BY_USER = "REMOVED_BY_USER"


ADVICE: dict[Code, str] = {
    Code.OUTPUT_MISSING: "the job is Done, but an --output pattern matched no file: `wms logs` shows which",
    Code.EXIT_CODE: "the program itself ended with an error: read its output with `wms logs` or `wms output`",
    Code.SIGNAL: "the program was ended by a signal that wms did not send: read its output with `wms logs`",
    Code.NOT_STARTED: "the program could not be started: check `executable` and what the input sandbox holds",
    Code.CPU_LIMIT: "run it again with more: `wms reschedule` with --cpu-time",
    Code.WALL_LIMIT: "run it again with more: `wms reschedule` with --wall-time",
    Code.MEMORY_LIMIT: "run it again with more: `wms reschedule` with --memory",
    Code.DISK_LIMIT: "run it again with more: `wms reschedule` with --disk; or write less",
    Code.PROCESS_LIMIT: "start fewer processes at a time, or ask for more --processors: each allows 1,000",
    Code.INPUT_FAILED: "the input sandbox could not be fetched or unpacked: submit it again",
    Code.FILE_UNAVAILABLE: "no replica gave an input: the text names each URL; `wms release` tries again once one does",
    Code.FILE_CORRUPT: "a replica has another size or checksum than was said: mend it and `wms release`, or submit with the right one",
    Code.URL_REFUSED: "the site's rules exclude the URL of an input: submit it again with another URL, or for another site",
    Code.OUTPUT_FAILED: "not all outputs could be stored: `wms output` fetches those that were; send large ones to a URL",
    Code.LEASE_EXPIRED: "its pilot fell silent: `wms timeline` shows what was heard of it last, and of whom",
    Code.PILOT_DIED: "its pilot ended under it: `wms timeline` shows what the element said, `wms pilots --output` what it printed",
    Code.NODE_LOST: "the site lost the node that it ran on: `wms timeline` shows when it was heard of last",
    Code.PILOT_FORGOTTEN: "the element knows nothing of its pilot any more: `wms timeline` shows when it was heard of last",
    Code.TOO_LARGE: "no message holds it: submit it again with what is long in a file of the input sandbox",
    Code.TO_BROKER: "the broker chooses where it runs: `wms why` tells how far it is",
    Code.PLACEMENT_FAILED: "the broker places it at the next best element: `wms why` tells where it was before",
    Code.NOT_PLACED: "`wms show --ranking` lists what was tried; `wms release` lets the broker try all of it again",
    Code.TOO_LATE_TO_START: "submit it again with a later latest start, or with none; `wms show --ranking` tells what kept it",
    Code.INDEX_REFUSED: "name index servers that the broker may ask, or leave `index_servers` out",
    Code.BROKER_FAULT: "a fault of the broker's own, which its log tells; `wms release` lets it try again",
    Code.COALLOCATION_BROKEN: "its jobs start together or not at all: `wms release` tries again if all can, else submit them anew",
    Code.DEPENDENCY: "it starts by itself once these have ended; `wms edit ID --unset after` lets it start without them",
    Code.DEPENDENCY_FAILED: "once `wms reschedule` brings that job to Done this one starts; `wms release` starts it without",
    Code.NEVER_STARTED: "each pilot that had it was lost before it began: `wms timeline` shows them; `wms release` tries again",
    Code.TOO_MANY_ATTEMPTS: "every attempt was lost: `wms logs` shows where; `wms reschedule` tries again",
}


class Reason(msgspec.Struct, frozen=True):
    """Why a job changed its state: a code for programs and a text for people, which may be empty."""

    code: Code
    text: str = ""


HOLDING = frozenset({Code.FILE_UNAVAILABLE, Code.FILE_CORRUPT, Code.URL_REFUSED})
"""Codes of faults that only the user can mend. A job that meets one before its payload begins is Held."""

OF_FILES = HOLDING | {Code.OUTPUT_FAILED}
"""Codes of faults in files given by URL. They say nothing about the computing element at which the transfer failed."""

OF_PROGRAM = frozenset({Code.EXIT_CODE, Code.SIGNAL})
"""Codes of jobs whose program ended by itself, and badly. Such a job may be started again, if its description says so."""

UNCOUNTED = frozenset({Code.OFFER_EXPIRED, Code.OFFER_DECLINED})
"""Codes of lost attempts that the pilot had never accepted. They do not count towards a job's limit of losses before its start."""
