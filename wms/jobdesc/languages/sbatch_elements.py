"""All options of sbatch(1): their names and letters, and why those that are not carried out are left out or refused."""

from collections.abc import Mapping
from typing import Final

from wms.jobdesc.languages.sbatch_text import Takes
from wms.jobdesc.languages.translation import Element

LETTERS: Final[Mapping[str, str]] = {
    "A": "account", "a": "array", "b": "begin", "D": "chdir", "M": "clusters", "C": "constraint", "S": "core-spec", "c": "cpus-per-task",
    "d": "dependency", "m": "distribution", "e": "error", "x": "exclude", "B": "extra-node-info", "G": "gpus", "h": "help", "H": "hold",
    "i": "input", "J": "job-name", "L": "licenses", "k": "no-kill", "F": "nodefile", "w": "nodelist", "N": "nodes", "n": "ntasks",
    "o": "output", "O": "overcommit", "s": "oversubscribe", "p": "partition", "q": "qos", "Q": "quiet", "t": "time", "u": "usage",
    "v": "verbose", "V": "version", "W": "wait",
}  # fmt: skip
"""The long names of options by their letters."""
_BARE: Final = (
    "contiguous", "disable-stdout-job-summary", "help", "hold", "ignore-pbs", "no-requeue", "overcommit", "oversubscribe", "share", "quiet",
    "reboot", "requeue", "spread-job", "stepmgr", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait",
)  # fmt: skip
_MAYBE: Final = ("exclusive", "get-user-env", "nice", "no-kill", "parsable", "propagate")
_LAYOUT: Final = "how tasks lie on the processors of a node is left to the node"
_ACCOUNTS: Final = "usage is accounted by owner and group"
_TELLS: Final = "how sbatch itself speaks"
OMITTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("account", "wckey", "mcs-label"), _ACCOUNTS),
    **dict.fromkeys(("qos", "nice", "priority", "reservation"), "the order of jobs is decided by shares and priority"),
    **dict.fromkeys(("mail-type", "mail-user"), "nobody is written to; use wms wait"),
    **dict.fromkeys(("comment", "admin-comment", "extra"), "is for people"),
    **dict.fromkeys(("parsable", "quiet", "verbose", "disable-stdout-job-summary", "wait"), _TELLS),
    **dict.fromkeys(
        (
            "distribution", "ntasks-per-socket", "ntasks-per-core", "cores-per-socket", "sockets-per-node", "threads-per-core",
            "extra-node-info", "hint", "mem-bind", "gpu-bind", "cpus-per-socket", "tres-bind", "spread-job", "use-min-nodes", "contiguous",
            "gres-flags", "tres-per-socket",
        ),
        _LAYOUT,
    ),
    "acctg-freq": "usage is measured as the configuration says",
    "profile": "usage is measured as the configuration says",
    "delay-boot": "nodes are not started for a job",
    "exclude": "nodes that failed before are avoided by the system",
    "ignore-pbs": "only #SBATCH lines are read",
    "kill-on-invalid-dep": "a job whose predecessor failed is told so",
    "no-kill": "a job has one node",
    "open-mode": "each attempt has an output of its own",
    "oversubscribe": "a job gets its own processors in any case",
    "get-user-env": "variables of your login shell do not go along: set those that the job needs",
    "propagate": "limits of your shell do not go along",
    "switches": "a job has one node",
    "time-min": "the limit is the one of --time",
    "wait-all-nodes": "a job has one node",
}  # fmt: skip
"""The options that are left out, since the job computes, reads, writes and needs the same without them; each with the reason."""
IMPOSSIBLE: Final[Mapping[str, str]] = {
    "batch": "a job has one node: ask for what it needs by requirements",
    "bb": "there are no burst buffers",
    "bbf": "there are no burst buffers",
    "begin": "use preferences.earliest_start, with its time zone",
    "cluster-constraint": "ask for what the job needs by requirements or tags",
    "clusters": "name the sites by --site",
    "constraint": "ask for what the job needs by requirements or tags",
    "container": "use --container with an image",
    "container-id": "use --container with an image",
    "core-spec": "a job has the processors that it asks for",
    "cpu-freq": "the frequency of processors cannot be set",
    "deadline": "use preferences.latest_start",
    "export-file": "write the variables as --export=NAME=value",
    "gid": "a job runs as its owner",
    "gpu-freq": "the frequency of GPUs cannot be set",
    "gpus-per-socket": "a node's sockets cannot be chosen",
    "help": "belongs on the command line",
    "hold": "use wms submit --hold",
    "licenses": "there are no licenses here: use tags",
    "mincpus": "use --ntasks or --cpus-per-task",
    "network": "networks cannot be asked for",
    "nodefile": "nodes cannot be named: use --site, or requirements",
    "nodelist": "nodes cannot be named: use --site, or requirements",
    "overcommit": "a processor runs one task",
    "power": "power cannot be managed",
    "prefer": "use rank",
    "reboot": "nodes are not rebooted for a job",
    "resv-ports": "ports cannot be reserved",
    "segment": "a job has one node",
    "stepmgr": "there are no job steps",
    "test-only": "use wms submit --dry-run",
    "thread-spec": "a job has the processors that it asks for",
    "tres-per-task": "use --cpus-per-task and --gpus-per-task",
    "uid": "a job runs as its owner",
    "usage": "belongs on the command line",
    "version": "belongs on the command line",
    "wrap": "belongs on the command line: wms submit -- sh -c 'commands'",
}
"""The options without which the job may be another one, each with what to do in their place."""
CARRIED_OUT: Final[Mapping[str, str]] = {
    "array": "becomes an array with the parameter `task`; a limit `%` is left out, but `%1`, one task after another, is refused",
    "chdir": "only `.`: a job runs in a directory of its own; others are refused",
    "cpus-per-gpu": "becomes `processors`, times the GPUs",
    "cpus-per-task": "becomes `processors`, times the tasks",
    "dependency": "`afterok` becomes `after`, `afterany` becomes `after_any`, of jobs of this system; others are refused",
    "error": "becomes `stderr`; a name elsewhere, or with what only the node knows, is `stderr.txt`; without it, errors go to the output",
    "exclusive": "becomes `whole_node`; with a value it is refused",
    "export": "`NAME=value` becomes `environment`; `NONE` is kept, `ALL` left out; names without values are refused",
    "gpus": "becomes `gpus`; a model is refused",
    "gpus-per-node": "becomes `gpus`; a model is refused",
    "gpus-per-task": "becomes `gpus`, times the tasks; a model is refused",
    "gres": "`gpu:N` becomes `gpus`; models and other resources are refused",
    "input": "the file goes with the job, and becomes `stdin`",
    "job-name": "becomes `name`",
    "mem": "becomes `memory_mb`; 0, a whole node's, is refused",
    "mem-per-cpu": "becomes `memory_mb`, times the processors",
    "mem-per-gpu": "becomes `memory_mb`, times the GPUs",
    "no-requeue": "becomes `max_attempts` of 1",
    "nodes": "only 1, or from 1 on: a job runs on one node",
    "ntasks": "becomes `processors`, times the processors of each, all on one node",
    "ntasks-per-gpu": "becomes `processors`, times the GPUs and the processors of each",
    "ntasks-per-node": "becomes `processors` if `--ntasks` is not given; more tasks than one node has are refused",
    "output": "becomes `stdout`; a name elsewhere, or with what only the node knows, is `stdout.txt`",
    "partition": "left out; refused if it is named for GPUs, memory or processors, and none are asked for",
    "requeue": "is the default here",
    "signal": "`TERM@60` becomes `grace_time`: the signal comes at the end of `--time`, the kill that much later; others are refused",
    "time": "becomes `wall_time`, in all forms of Slurm",
    "tmp": "becomes `disk_mb`",
}
"""The options that are carried out, at least in some of their forms, each with what becomes of it."""
SAME: Final[Mapping[str, str]] = {
    "share": "oversubscribe", "tasks": "ntasks", "tasks-per-node": "ntasks-per-node", "workdir": "chdir",
}  # fmt: skip
"""Older long names of options, with the present ones."""

NAMES: Final[Mapping[str, Takes]] = {
    **dict.fromkeys((*CARRIED_OUT, *SAME, *OMITTED, *IMPOSSIBLE), "value"),
    **dict.fromkeys(_BARE, "nothing"),
    **dict.fromkeys(_MAYBE, "maybe"),
}
"""What each option takes, by its long name."""
_BY_NAME: Final = {name: letter for letter, name in LETTERS.items()}


def _shown(name: str) -> str:
    return f"-{_BY_NAME[name]}, --{name}" if name in _BY_NAME else f"--{name}"


ELEMENTS: Final[Mapping[str, Element]] = {
    **{_shown(name): Element("translated", text) for name, text in CARRIED_OUT.items()},
    **{_shown(name): Element("omitted", text) for name, text in OMITTED.items()},
    **{_shown(name): Element("impossible", text) for name, text in IMPOSSIBLE.items()},
}
"""Every option of the manual, with its letter, and what becomes of it."""
