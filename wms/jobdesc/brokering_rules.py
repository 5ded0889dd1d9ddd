"""The rules for the fields of a description about files by URL, preferences and placement."""

from typing import Final

from wms.jobdesc import rules, value_rules
from wms.jobdesc.description import INDEX_SERVERS_LIMIT
from wms.jobdesc.preferences import BENCHMARKS_LIMIT, YEAR
from wms.jobdesc.rules import Rule
from wms.jobdesc.staged_file import FILES_LIMIT, REPLICAS_LIMIT, TARGETS_LIMIT

SCHEMES: Final = (
    "file", "http", "https", "dav", "davs", "webdav", "webdavs", "s3", "s3s", "root", "roots", "xroot", "xroots", "gsiftp", "srm",
    "lfn",
)  # fmt: skip
"""The schemes that URLs of files may have. A pilot may support fewer; which ones is unknown until the job runs."""
INDEX_SCHEMES: Final = ("http", "https", "file", "archery", "dns")

_NAME = rules.pattern(1_024)
_URL = value_rules.url(SCHEMES)
_DURATION = value_rules.real(0, YEAR, "seconds")
_POSITIVE = value_rules.real(1e-9, 1e12)
_CHECKSUM = rules.word(
    80,
    r"sha256:[0-9a-fA-F]{64}|md5:[0-9a-fA-F]{32}|adler32:[0-9a-fA-F]{8}",
    "sha256:, md5: or adler32: and the digits in hexadecimal",
)


def _or_empty(rule: Rule) -> Rule:
    return lambda value: rules.FINE if value == "" else rule(value)


FILE_NAME: Final = _or_empty(_NAME)
INPUTS: Final = rules.many(
    rules.record(
        {
            "name": _NAME,
            "sources": rules.many(_URL, REPLICAS_LIMIT, least=1),
            "size": rules.optional(rules.number(0, 2**60, "bytes")),
            "checksum": _or_empty(_CHECKSUM),
            "executable": rules.truth,
        },
        needed=("name", "sources"),
    ),
    FILES_LIMIT,
)
OUTPUTS: Final = rules.many(
    rules.record(
        {"name": _NAME, "targets": rules.many(_URL, TARGETS_LIMIT, least=1), "optional": rules.truth},
        needed=("name", "targets"),
    ),
    FILES_LIMIT,
)
PREFERENCES: Final = rules.optional(
    rules.record(
        {
            "benchmarks": rules.many(
                rules.record(
                    {"name": rules.line(255, least=1), "result": _POSITIVE, "seconds": _POSITIVE},
                    needed=("name", "result", "seconds"),
                ),
                BENCHMARKS_LIMIT,
            ),
            "stage_in_seconds": rules.optional(_DURATION),
            "stage_out_seconds": rules.optional(_DURATION),
            "earliest_start": rules.optional(value_rules.moment),
            "earliest_start_after": rules.optional(_DURATION),
            "latest_start": rules.optional(value_rules.moment),
            "latest_start_after": rules.optional(_DURATION),
            "objective": value_rules.one_of("earliest-completion", "earliest-start"),
            "reservation": rules.truth,
            "flexible": rules.truth,
        }
    )
)
INDEX_SERVERS: Final = rules.many(value_rules.url(INDEX_SCHEMES), INDEX_SERVERS_LIMIT)
IMAGE: Final = rules.word(
    1_000,
    # Not a runtime's other ways to an image, such as `dir:` and `docker-archive:`, which read files with the pilot's rights.
    r"(|docker://|oras://|library://)"
    r"(?!(?:dir|oci|oci-archive|docker-archive|docker-daemon|containers-storage|ostree|sif|tarball|file|shub):)(?!.*:/)"
    r"[A-Za-z0-9][A-Za-z0-9._:@/+-]*|(/[A-Za-z0-9_+@=-][A-Za-z0-9._:+@=-]*)+",
    "the name of an image, such as docker://host/name:tag, or an absolute path of letters, digits and . _ : + @ = -",
)
NETWORK: Final = value_rules.one_of("node", "none")
DISPATCH: Final = value_rules.one_of("", "pilot", "direct")
