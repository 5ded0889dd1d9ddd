"""`wms completion`: the candidates for a shell's tab key: commands, options, and values such as states, sites and ids."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, Parameter

from wms.cli.printing import show
from wms.cli.session import OK

PATIENCE_SECONDS = 1.0
"""How many seconds completion waits for sites, elements or jobs from a running system."""
IDS_SHOWN = 30

SCRIPTS = {
    "bash": """_wms() {
    local IFS=$'\\n'
    COMPREPLY=($(wms _complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _wms wms
""",
    "zsh": """#compdef wms
_wms() {
    local -a found
    found=("${(@f)$(wms _complete "${(@)words[2,$CURRENT]}" 2>/dev/null)}")
    if [[ -n $found[1] ]]; then compadd -a found; else _files; fi
}
compdef _wms wms
""",
    "fish": """function __wms
    set -l words (commandline -opc) (commandline -ct)
    wms _complete $words[2..-1] 2>/dev/null
end
complete -c wms -a '(__wms)'
""",
}

Live: TypeAlias = Callable[[str], Sequence[str]]
"""A function that asks a running system. Given "sites", "elements" or "jobs", it returns the names or ids that exist now."""

_OF_JOBS = (
    "jobs", "status", "wait", "why", "logs", "timeline", "output", "kill", "hold", "release", "edit", "reschedule", "rm",
    "show", "reservations",
)  # fmt: skip
_LIVE_VALUES = {"--site": "sites", "--banned-site": "sites", "--ce": "elements"}


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="bash, zsh or fish")], /
) -> int:
    """Print the script by which a shell completes commands, options, states, sites and ids.

    For example:
      wms completion bash > ~/.local/share/bash-completion/completions/wms
      wms completion zsh > ~/.zfunc/_wms
      wms completion fish > ~/.config/fish/completions/wms.fish
    """
    show(SCRIPTS[shell].rstrip("\n"))
    return OK


def answer(words: Sequence[str]) -> int:
    """Print the completions of the last word, one on each line, and return the exit code. The other words are the command line before it."""
    for each in candidates(words or [""], live):
        show(each)
    return OK


def candidates(words: Sequence[str], live: Live) -> list[str]:
    """Return the completions of the last word on a command line; empty if the shell should offer files.

    `live` returns the sites, elements or jobs that exist now.
    """
    from wms.cli.app import COMMANDS, app_for, command_in

    *before, current = words
    if "--" in before:
        return []
    name = command_in(before)
    if not name:
        names = [each for _, each, _, _ in COMMANDS]
        return _beginning([*names, "--help", "--version"], current)
    command = app_for([name])[name]
    below = _commands_of(command)
    given = [word for word in before[before.index(name) + 1 :] if not word.startswith("-")]
    if below and given and given[0] in below:
        command, below = command[given[0]], []
    options = _options(command)
    if before[-1] in options and options[before[-1]] is not None:
        return _beginning(_values(before[-1], options[before[-1]] or (), live), current)
    if current.startswith("-"):
        return _beginning([*options, "--help"], current)
    subcommands = [] if given else below
    return _beginning([*subcommands, *_arguments(name, given, live)], current)


def _commands_of(command: App) -> list[str]:
    return [each for each in command if not each.startswith("-")]


def _options(command: App) -> dict[str, tuple[str, ...] | None]:
    """Return the options of a command by name, each with its possible values.

    The values are empty if any value is possible, and None if the option takes no value.
    """
    found: dict[str, tuple[str, ...] | None] = {}
    if command.default_command is None:
        return found
    for argument in command.assemble_argument_collection():
        takes_none = argument.token_count() == (0, False)
        choices = tuple(argument.get_choices() or ())
        for name in argument.names:
            if name.startswith("--"):
                found[name] = None if takes_none else choices
    return found


def _values(option: str, choices: Iterable[str], live: Live) -> Sequence[str]:
    if option == "--state" and not choices:
        from wms.job.state import State

        return [*State, "live", "ended"]
    if option in ("--columns", "--sort"):
        from wms.cli.job_table import COLUMNS

        return [each.name.lower() for each in COLUMNS]
    return live(_LIVE_VALUES[option]) if option in _LIVE_VALUES else list(choices)


def _arguments(name: str, given: Sequence[str], live: Live) -> Sequence[str]:
    if name in _OF_JOBS:
        return live("jobs")
    if name == "site":
        return live("sites") if len(given) == 1 else live("elements") if len(given) == 2 else []
    if name == "completion":
        return list(SCRIPTS)
    return ["default"] if name == "simulate" and given else []


def _beginning(names: Iterable[str], current: str) -> list[str]:
    return [name for name in names if name.startswith(current)]


def live(kind: str) -> list[str]:
    """Ask the user's system for its present "sites", "elements" or "jobs" (`kind`). Empty if the system does not answer in time."""
    import asyncio

    from wms.errors import WmsError

    try:
        return asyncio.run(_asked(kind))
    except (WmsError, TimeoutError, OSError):
        return []


async def _asked(kind: str) -> list[str]:
    import asyncio

    from wms.cli.session import quiet
    from wms.client import Client
    from wms.client.selector import select
    from wms.client.settings import data_directory

    quiet()
    connecting = Client.connect(data_directory(None), timeout=PATIENCE_SECONDS, patience=PATIENCE_SECONDS)
    async with asyncio.timeout(3 * PATIENCE_SECONDS), connecting as client:
        if kind == "jobs":
            jobs = client.jobs(select(everything=True), newest=True, limit=IDS_SHOWN)
            return [str(job.job_id) async for job in jobs]
        found = await client.sites()
        return sorted({each.site if kind == "sites" else each.ce for each in found})
