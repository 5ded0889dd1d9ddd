"""The commands and their groups. Only the module of the called command is imported, so that `wms` starts fast."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from cyclopts import App, Group

from wms import __version__

HELP = """A workload management system: jobs go in, pilots at sites ask for them, results come back.

`wms up` starts a whole system on this machine; `wms submit -- echo hello` runs a job on it."""

EXIT_CODES = """Exit codes:
    0  success
    1  some jobs failed, or some were not as ordered
    2  the input is wrong
    3  not allowed, or no such job
   70  a bug in wms
   75  the system does not answer now: try again
  130  interrupted

Every command has --help with examples. WMS_DEBUG=1 shows log lines and tracebacks."""

JOBS = Group("Jobs", sort_key=1)
ORDERS = Group("Orders", sort_key=2)
LOOK = Group("The system", sort_key=3)
RUN = Group("Running a system", sort_key=4)

COMMANDS = (
    (JOBS, "submit", "submit:submit", "Submit jobs: a program, an array, or descriptions from files."),
    (JOBS, "convert", "convert:convert", "Convert job descriptions into another language."),
    (JOBS, "jobs", "jobs:jobs", "List jobs, the newest first."),
    (JOBS, "status", "jobs:status", "Show the states of jobs, or the health of the system."),
    (JOBS, "wait", "jobs:wait", "Wait until jobs have ended."),
    (JOBS, "why", "why:why", "Explain the state of a job."),
    (
        JOBS,
        "show",
        "job_record:show_job",
        "Show the records of jobs, and the rankings that led to their places.",
    ),
    (JOBS, "logs", "logs:logs", "Show the history of a job, and its output."),
    (
        JOBS,
        "timeline",
        "timeline:timeline",
        "Show the events of a job in the order of time, with their sources.",
    ),
    (JOBS, "output", "outputs:output", "Fetch the files that jobs kept."),
    (ORDERS, "kill", "job_orders:kill", "Kill jobs."),
    (ORDERS, "hold", "job_orders:hold", "Hold waiting jobs until they are released."),
    (ORDERS, "release", "job_orders:release", "Release held jobs, so that they wait for a pilot again."),
    (ORDERS, "edit", "job_orders:edit", "Change the requirements of jobs that wait or are held."),
    (
        ORDERS,
        "reschedule",
        "job_orders:reschedule",
        "Run jobs again from the beginning, with changed requirements if some are given.",
    ),
    (ORDERS, "rm", "job_orders:remove", "Delete jobs."),
    (ORDERS, "pilot", "pilot:pilot", "Order private pilots, list the orders, and withdraw them."),
    (LOOK, "sites", "sites_queues_pilots:sites", "List the computing elements that advertise themselves."),
    (LOOK, "site", "site:site", "Show a site; ban, drain, unban, test or forget it."),
    (LOOK, "queues", "sites_queues_pilots:queues", "List the task queues."),
    (
        LOOK,
        "pilots",
        "sites_queues_pilots:pilots",
        "List the pilots, explain how many are sent where, or show the output of one.",
    ),
    (LOOK, "predictions", "job_record:predictions", "Show how true the broker's predictions were."),
    (
        LOOK,
        "reservations",
        "reservations:reservations",
        "List or cancel the reservations of CPUs for jobs.",
    ),
    (LOOK, "shares", "shares:shares", "Show or set the shares of groups."),
    (LOOK, "limits", "limits:limits", "Show or set limits on running and waiting jobs."),
    (LOOK, "top", "top:top", "Watch jobs, services, sites and pilots, live."),
    (
        LOOK,
        "open",
        "dashboard:open_dashboard",
        "Open the dashboard in the browser, signed in with your token.",
    ),
    (
        LOOK,
        "dead-letters",
        "dead_letters:dead_letters",
        "List, show, replay or drop messages that could not be handled; skip one that blocks a partition.",
    ),
    (
        LOOK,
        "log-gaps",
        "log_gaps:log_gaps",
        "List messages that no service handled; take in or drop those kept aside since a restore of the database.",
    ),
    (
        LOOK,
        "usage",
        "usage:usage",
        "Show what the jobs used that you may see, by VO, group, owner, site, month or day.",
    ),
    (LOOK, "whoami", "access:whoami", "Show who you are to the system."),
    (
        LOOK,
        "audit-trail",
        "access:audit_trail",
        "List orders and refusals, the newest first: who ordered what, on what, and the answer.",
    ),
    (
        LOOK,
        "revoke",
        "access:revoke",
        "Have all services refuse a token, a subject or a pilot; or list what is revoked.",
    ),
    (LOOK, "audit", "audit_and_migrate:audit", "Check the system's invariants in its database."),
    (RUN, "up", "up:up", "Run a whole system on this machine until Ctrl-C."),
    (RUN, "down", "up:down", "End the system that `wms up` keeps up on this machine."),
    (
        RUN,
        "login",
        "login:login",
        "Log in at an OpenID provider: confirm a code in the browser of any machine.",
    ),
    (
        RUN,
        "logout",
        "login:logout",
        "Log out: have the token refused everywhere, the provider renew it no more, and delete it here.",
    ),
    (RUN, "profiles", "profiles:profiles", "List your profiles: the systems you use, each under a name."),
    (RUN, "token", "up:token", "Show who you are to the system, or make a token."),
    (
        RUN,
        "completion",
        "completion:completion",
        "Print the script by which a shell completes commands, options, states, sites and ids.",
    ),
    (RUN, "man", "manual:man", "Write the manual pages of all commands."),
    (RUN, "migrate", "audit_and_migrate:migrate", "Bring the database's schema up to this version."),
    (
        RUN,
        "kafka-acls",
        "kafka_acls:kafka_acls",
        "Print the access rules of a Kafka cluster, as commands of Kafka's own tool, or add them to the cluster.",
    ),
    (
        RUN,
        "postgres-roles",
        "postgres_roles:postgres_roles",
        "Print the SQL that gives each service and operators' tools a Postgres role of their own, or run it.",
    ),
    (RUN, "demo", "demo:demo", "Start a system, run a real workload, verify it, and stop."),
    (RUN, "replay", "replay:replay", "Replay a trace of real jobs, faster."),
    (RUN, "record", "record:record", "Write a recording of jobs that ran, to simulate them."),
    (
        RUN,
        "simulate",
        "simulate:simulate",
        "Simulate a trace or a recording under other limits, shares or sites, and compare.",
    ),
)
"""The commands: group, name, module and function within `wms.cli`, and one line for the list of commands."""


def app_for(arguments: Sequence[str]) -> App:
    """Return the application with all commands. Only the module of the command that the arguments call is imported."""
    app = App(
        name="wms",
        help=HELP,
        help_epilogue=EXIT_CODES,
        help_format="plaintext",
        version=__version__,
        result_action="return_value",
        exit_on_error=False,
        print_error=False,
        help_on_error=False,
        suppress_keyboard_interrupt=False,
    )
    called = command_in(arguments)
    for place, (group, name, where, summary) in enumerate(COMMANDS):
        module, _, function = where.partition(":")
        if name == called:
            command = getattr(import_module(f"wms.cli.{module}"), function)
            _register(app, command, name, group, place)
        else:
            # A stand-in, so that the command is listed and suggested without its import.
            app.command(_not_called, name=name, group=group, sort_key=place, help_epilogue="", help=summary)
    return app


def _not_called() -> None:
    """A function without effect, registered for the commands that the arguments do not call."""


def _register(app: App, command: Any, name: str, group: Group, place: int) -> None:
    if isinstance(command, App):
        # A command with subcommands is an application with settings of its own.
        command.group, command.sort_key, command.help_epilogue = group, place, ""
        app.command(command, name=name)
    else:
        app.command(command, name=name, group=group, sort_key=place, help_epilogue="")


def command_in(arguments: Sequence[str]) -> str:
    """Return the name of the command that the arguments call; empty if there is none."""
    first = next((word for word in arguments if not word.startswith("-")), "")
    return first if any(first == name for _, name, _, _ in COMMANDS) else ""


def subcommand_in(command: str, arguments: Sequence[str]) -> str:
    """Return the name of the subcommand of `command` that the arguments call; empty if there is none."""
    where = next((where for _, name, where, _ in COMMANDS if name == command), "")
    if not where:
        return ""
    module, _, function = where.partition(":")
    found = getattr(import_module(f"wms.cli.{module}"), function)
    words = [word for word in arguments if not word.startswith("-")][1:2]
    return words[0] if words and isinstance(found, App) and words[0] in found else ""
