"""The commands and their groups, put together."""

from cyclopts import App, Group

from wms import __version__
from wms.cli import demo, jobs, local, logs, operate, orders, outputs, places, replay, submit, top

HELP = """A workload management system: jobs go in, pilots at sites ask for them, results come back.

`wms up` starts a whole system on this machine; `wms submit -- echo hello` runs a job on it."""

EXIT_CODES = """Exit codes:
    0  all went well
    1  some jobs failed, or none was as wanted
    2  the input is wrong
    3  not allowed, or no such job
   70  a fault of ours
   75  the system does not answer just now: try again
  130  interrupted

Every command has --help with examples. WMS_DEBUG=1 shows what went on inside."""

JOBS = Group("Jobs", sort_key=1)
ORDERS = Group("Orders", sort_key=2)
LOOK = Group("The system", sort_key=3)
RUN = Group("Running a system", sort_key=4)

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

_COMMANDS = {
    JOBS: (
        ("submit", submit.submit),
        ("jobs", jobs.jobs),
        ("status", jobs.status),
        ("wait", jobs.wait),
        ("why", jobs.why),
        ("logs", logs.logs),
        ("output", outputs.output),
    ),
    ORDERS: (
        ("kill", orders.kill),
        ("hold", orders.hold),
        ("release", orders.release),
        ("reschedule", orders.reschedule),
        ("rm", orders.remove),
    ),
    LOOK: (
        ("sites", places.sites),
        ("queues", places.queues),
        ("pilots", places.pilots),
        ("top", top.top),
        ("dead-letters", operate.dead_letters),
        ("audit", operate.audit),
    ),
    RUN: (
        ("up", local.up),
        ("down", local.down),
        ("token", local.token),
        ("migrate", operate.migrate),
        ("demo", demo.demo),
        ("replay", replay.replay),
    ),
}

for _group, _members in _COMMANDS.items():
    for _place, (_name, _command) in enumerate(_members):
        app.command(_command, name=_name, group=_group, sort_key=_place, help_epilogue="")

app.register_install_completion_command("--install-completion", add_to_startup=True, group=RUN)
