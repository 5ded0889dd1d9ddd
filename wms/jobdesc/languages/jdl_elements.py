"""What becomes of the attributes of JDL that are not simply kept, each with a sentence on how or why."""

from collections.abc import Mapping
from typing import Final

OMITTED: Final = {
    **dict.fromkeys(
        ("owner", "ownergroup", "ownerdn", "ownername", "virtualorganisation", "virtualorganization"), "the token says whose job it is"
    ),
    **dict.fromkeys(("allowzippedisb", "zippedisb", "loglevel", "shallowretrycount"), "is decided by the system"),
    **dict.fromkeys(("perusalfileenable", "perusaltimeinterval", "perusalfilestoenable"), "use wms logs -f"),
    "myproxyserver": "credentials are renewed by the system itself",
    "smpgranularity": "all processors of a job are of one node",
    "dataaccessprotocol": "the agent chooses the replica",
    "fuzzyrank": "the element of the highest rank is taken",
    "hlrlocation": "usage is accounted by the system itself",
    "usertags": "is for people",
}  # fmt: skip
"""The attributes that are left out, since the job is the same without them; each with the reason."""
IMPOSSIBLE: Final = {
    "outputse": "outputs need a URL each",
    "outputpath": "outputs need a URL each",
    "outputsandboxdesturi": "use outputs with URLs, or wms output",
    "inputsandboxbaseuri": "write the whole URL of each input",
    "expirytime": "use preferences.latest_start",
    "prologue": "the payload can run other programs itself",
    "prologuearguments": "the payload can run other programs itself",
    "epilogue": "the payload can run other programs itself",
    "epiloguearguments": "the payload can run other programs itself",
    "listenerport": "there are no interactive jobs",
    "dependencies": "use wms submit --after",
    "nodes": "is no list of jobs",
    "file": "put the nodes into one document",
}
"""The attributes without which the job may be another one."""
TOLD: Final[Mapping[str, str]] = {
    "Executable": "a name of the input sandbox is run; others are of the node",
    "Arguments": "is split as by a shell; lists, expressions, and characters that a shell would work out are refused",
    "Environment": 'takes texts such as "NAME=value"; variables in them are refused',
    "InputSandbox": "files, directories and patterns go along, each job's own ones in up to 1,000 jobs; URLs are fetched",
    "OutputSandbox": "standard streams are kept in any case",
    "InputData": "is fetched before the job starts",
    "OutputData": "is sent to its URL; without one it goes to the output sandbox; records are refused",
    "CPUNumber": "becomes `processors`, all of one node",
    "NodeNumber": "becomes `processors`, all of one node",
    "HostNumber": "only 1",
    "OutputSandboxBaseDestURI": "only `gsiftp://localhost`: outputs wait for `wms output`",
    "RetryCount": "becomes `max_attempts`, one more",
    "ReschedulingCounter": "becomes `max_attempts`, one more",
    "JobType": "gLite's kinds of run, or DIRAC's kind of work; interactive jobs and DAGs are refused",
    "Parameters": "an array; `%s`, `%n`, `%(name)s` and `_PARAM_` are its placeholders",
    "Requirements": "becomes `requirements`",
    "Rank": "becomes `rank`",
    "Site": "becomes `sites`",
    "BannedSite": "becomes `banned_sites`",
    "MinRAM": "becomes `memory_mb`",
    "MaxRAM": "becomes `max_memory_mb`",
}
"""What becomes of attributes that are not kept in the same words."""
