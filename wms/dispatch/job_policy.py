"""What a pilot's jobs require, in the form in which its batch job shows this to the administrators of the batch system.

Administrators and their scripts can query it: as environment everywhere, as a comment in Slurm, as attributes of the job's ad in
HTCondor, in the description of the job in ARC and LSF, and as variables of the job in PBS. It names groups and numbers, but no person and
no secret.
"""

from collections.abc import Mapping

from msgspec import Struct

VALUE_LIMIT, COMMENT_LIMIT = 200, 900
"""How many characters one value, and a whole comment, may have."""
PREFIX = "WMS_POLICY_"
_PUNCTUATION = frozenset(' "!%&()*+,-./:;<=>?@[]^_{|}~')
"""The characters allowed beside ASCII letters and digits. None of them ends a line, or is special to a shell within single quotes."""


class JobPolicy(Struct, frozen=True, kw_only=True):
    """What the jobs for which a pilot is sent require, as shown to administrators. 0 or empty stands for no requirement."""

    vo: str = ""
    owner_groups: tuple[str, ...] = ()
    cores: int = 0
    cpu_seconds: int = 0
    walltime_seconds: int = 0
    memory_mb: int = 0
    hosts: str = ""
    """The requirements on hosts, as a ClassAd expression."""


def attributes(policy: JobPolicy) -> dict[str, str]:
    """Return the requirements that are set, by name in lower case.

    Each value is one line of printable ASCII, at most `VALUE_LIMIT` characters.
    """
    said = {
        "vo": policy.vo,
        "owner_groups": ",".join(policy.owner_groups),
        "cores": _number(policy.cores),
        "cpu_seconds": _number(policy.cpu_seconds),
        "walltime_seconds": _number(policy.walltime_seconds),
        "memory_mb": _number(policy.memory_mb),
        "hosts": policy.hosts,
    }
    return {name: text for name, value in said.items() if (text := _plain(value))}


def environment(policy: JobPolicy) -> dict[str, str]:
    """Return the requirements that are set, as environment variables: `WMS_POLICY_VO`, `WMS_POLICY_CPU_SECONDS`, and so on."""
    return {f"{PREFIX}{name.upper()}": value for name, value in attributes(policy).items()}


def comment(policy: JobPolicy) -> str:
    """Return the requirements that are set, on one line: `wms vo=lhcb; owner_groups=physics; cores=8`. Empty if there are none."""
    said = attributes(policy)
    return (
        f"wms {'; '.join(f'{name}={value}' for name, value in said.items())}"[:COMMENT_LIMIT] if said else ""
    )


def of_ad(policy: JobPolicy) -> Mapping[str, str]:
    """Return the requirements that are set, as attributes of an HTCondor job's ad: `WmsPolicyVo`, `WmsPolicyCpuSeconds`, and so on."""
    return {
        "WmsPolicy" + "".join(part.capitalize() for part in name.split("_")): value
        for name, value in attributes(policy).items()
    }


def _number(value: int) -> str:
    return str(value) if value > 0 else ""


def _plain(text: str) -> str:
    kept = (c if (c.isascii() and c.isalnum()) or c in _PUNCTUATION else " " for c in text)
    return " ".join("".join(kept).split())[:VALUE_LIMIT].rstrip()
