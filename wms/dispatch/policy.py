"""The policy requirements of a pilot's jobs, as the batch job that the pilot is shows them to whoever runs the batch system.

A site's people, and their scripts, can query them out of each batch job: as environment everywhere, as a comment in Slurm, as
attributes of the job's ad in HTCondor, in the description of the job in ARC and LSF, as variables of the job in PBS. They
name groups and numbers, no person and no secret.
"""

from collections.abc import Mapping

from msgspec import Struct

VALUE_LIMIT, COMMENT_LIMIT = 200, 900
"""Characters of one value, and of all in one comment."""
PREFIX = "WMS_POLICY_"
_PUNCTUATION = frozenset(' "!%&()*+,-./:;<=>?@[]^_{|}~')
"""Beside letters and digits of ASCII: nothing that a shell within apostrophes, or a line's end, takes for more than itself."""


class JobPolicy(Struct, frozen=True, kw_only=True):
    """What the jobs of a pilot require; 0 or nothing where they do not say."""

    vo: str = ""
    owner_groups: tuple[str, ...] = ()
    cores: int = 0
    cpu_seconds: int = 0
    walltime_seconds: int = 0
    memory_mb: int = 0
    hosts: str = ""
    """What they require of hosts, as an expression."""


def attributes(policy: JobPolicy) -> dict[str, str]:
    """Return what is said, by its name in lower case; every value is bounded, and printable ASCII on one line."""
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
    """Return the same as environment: `WMS_POLICY_VO`, `WMS_POLICY_CPU_SECONDS`, ..."""
    return {f"{PREFIX}{name.upper()}": value for name, value in attributes(policy).items()}


def comment(policy: JobPolicy) -> str:
    """Return the same on one line: `wms vo=lhcb; owner_groups=physics; cores=8`. Empty if nothing is said."""
    said = attributes(policy)
    return (
        f"wms {'; '.join(f'{name}={value}' for name, value in said.items())}"[:COMMENT_LIMIT] if said else ""
    )


def of_ad(policy: JobPolicy) -> Mapping[str, str]:
    """Return the same by the names of attributes of an ad: `WmsPolicyVo`, `WmsPolicyCpuSeconds`, ..."""
    return {
        "WmsPolicy" + "".join(part.capitalize() for part in name.split("_")): value
        for name, value in attributes(policy).items()
    }


def _number(value: int) -> str:
    return str(value) if value > 0 else ""


def _plain(text: str) -> str:
    kept = (c if (c.isascii() and c.isalnum()) or c in _PUNCTUATION else " " for c in text)
    return " ".join("".join(kept).split())[:VALUE_LIMIT].rstrip()
