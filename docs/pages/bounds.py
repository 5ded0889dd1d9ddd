"""`docs/bounds.md`: how much each parser takes at most of what comes from outside, before it parses."""

from docs.pages.structs import head, row
from services.advertiser import lsf_output, pbs_output
from services.gateway import http_connection, job_submission, submission_parsing
from services.matcher import ad_parsing
from wms.auth import issuer_keys, token
from wms.bus import decompression, reader
from wms.classad import limits as classad
from wms.cli import job_descriptions, scenario_file
from wms.client import credential, login
from wms.discovery import address
from wms.discovery import document as discovery
from wms.dispatch import arc_rest, commands, mapping_script, port
from wms.glue import entity, glue2_xml, ldif, tree
from wms.jobdesc import conflicts, document, expansion, from_toml, small, validation
from wms.jobdesc.languages import hardened_xml
from wms.jobdesc.languages.jsdl import definition
from wms.messages import wire
from wms.replay import swf
from wms.runtime import config, issuer_fetch
from wms.simulation import recording
from wms.transfer import archive, stored_object

LEAD = """# Bounds of what is read

Whatever comes from outside is measured before it is parsed, and refused if it is too large. This page is made from the constants of
the parsers. How large each field of a message or a file may be is in [messages.md](messages.md) and
[configuration.md](configuration.md): those bounds are checked while it is decoded ([`wms/bounds.py`](../wms/bounds.py)).
"""
_ARCHIVE = archive.ArchiveLimits()

Cap = tuple[str, int]
PARSERS: list[tuple[str, str, list[Cap]]] = [
    ("a message (JSON)", "wms/messages/wire.py", [("bytes", wire.PAYLOAD_LIMIT)]),
    (
        "a compressed batch of messages",
        "wms/bus/decompression.py",
        [("bytes expanded", decompression.EXPANDED_BYTES)],
    ),
    ("a token beside a message", "wms/bus/reader.py", [("bytes", reader.TOKEN_LIMIT)]),
    (
        "the line and headers of an HTTP request",
        "services/gateway/http_connection.py",
        [("bytes", http_connection.HEADER_BYTES), ("requests sent ahead", http_connection.PIPELINED)],
    ),
    ("a token", "wms/auth/token.py", [("bytes", token.SIZE_LIMIT)]),
    ("a file of public keys (JSON)", "wms/auth/token.py", [("bytes", token.KEYS_BYTES)]),
    (
        "a discovery document of an issuer (JSON)",
        "wms/runtime/issuer_fetch.py",
        [("bytes", issuer_fetch.DISCOVERY_BYTES)],
    ),
    (
        "the keys of an issuer (JSON)",
        "wms/runtime/issuer_fetch.py",
        [("bytes", issuer_fetch.KEYS_BYTES), ("keys", issuer_keys.KEYS_LIMIT)],
    ),
    ("an answer of a provider at a login (JSON)", "wms/client/login.py", [("bytes", login.ANSWER_BYTES)]),
    ("a token file of a user", "wms/client/credential.py", [("bytes", credential.LIMIT)]),
    (
        "a ClassAd or an expression",
        "wms/classad/limits.py",
        [
            ("bytes", classad.TEXT_BYTES),
            ("levels", classad.DEPTH),
            ("nodes", classad.NODES),
            ("attributes", classad.ATTRIBUTES),
        ],
    ),
    (
        "a job description (JSON)",
        "wms/jobdesc/document.py",
        [
            ("bytes", document.SIZE_LIMIT),
            ("levels", document.DEPTH_LIMIT),
            ("descriptions", document.DESCRIPTIONS_LIMIT),
        ],
    ),
    (
        "a job description (TOML)",
        "wms/jobdesc/from_toml.py",
        [("bytes", from_toml.SIZE_LIMIT), ("levels", document.DEPTH_LIMIT)],
    ),
    (
        "a job description (XML)",
        "wms/jobdesc/languages/hardened_xml.py",
        [
            ("bytes", hardened_xml.SIZE_LIMIT),
            ("levels", hardened_xml.DEPTH_LIMIT),
            ("elements", hardened_xml.ELEMENTS_LIMIT),
            ("attributes", hardened_xml.ATTRIBUTES_LIMIT),
        ],
    ),
    (
        "a sweep over what an array cannot vary (JSDL)",
        "wms/jobdesc/languages/jsdl/definition.py",
        [("jobs", definition.COPIES_LIMIT)],
    ),
    (
        "lists of parameters of a submission",
        "wms/jobdesc/conflicts.py",
        [("bytes", conflicts.PARAMETERS_LIMIT)],
    ),
    ("a file of a list of values", "wms/cli/job_descriptions.py", [("bytes", job_descriptions.LIST_LIMIT)]),
    ("a configuration (TOML)", "wms/runtime/config.py", [("bytes", config.SIZE_LIMIT)]),
    (
        "a GLUE document (LDIF)",
        "wms/glue/ldif.py",
        [("bytes", entity.SIZE_LIMIT), ("lines", ldif.LINES_LIMIT), ("entities", entity.ENTITIES_LIMIT)],
    ),
    (
        "a GLUE document (XML)",
        "wms/glue/glue2_xml.py",
        [
            ("bytes", entity.SIZE_LIMIT),
            ("levels", tree.DEPTH_LIMIT),
            ("nodes", glue2_xml.NODES_LIMIT),
            ("entities", entity.ENTITIES_LIMIT),
        ],
    ),
    (
        "a GLUE document (JSON)",
        "wms/glue/arc_json.py",
        [("bytes", entity.SIZE_LIMIT), ("levels", 2 * tree.DEPTH_LIMIT)],
    ),
    (
        "a document of an index (LDIF, XML, JSON)",
        "wms/discovery/document.py",
        [("bytes", discovery.SIZE_LIMIT), ("addresses", discovery.LEADS_LIMIT)],
    ),
    ("an address", "wms/discovery/address.py", [("characters", address.LENGTH_LIMIT)]),
    ("an answer of an ARC element", "wms/dispatch/arc_rest.py", [("bytes", arc_rest.ANSWER_LIMIT)]),
    ("what a batch system's command prints", "wms/dispatch/commands.py", [("bytes", commands.SIZE_LIMIT)]),
    (
        "queues and nodes as PBS's tools tell them",
        "services/advertiser/pbs_output.py",
        [("records each", pbs_output.RECORDS_LIMIT)],
    ),
    (
        "queues and hosts as LSF's tools tell them",
        "services/advertiser/lsf_output.py",
        [("records each", lsf_output.RECORDS_LIMIT), ("hosts that a queue names", lsf_output.NAMES_LIMIT)],
    ),
    (
        "a question to a site's mapping script",
        "wms/dispatch/mapping_script.py",
        [("characters", mapping_script.QUESTION_LIMIT)],
    ),
    (
        "an answer of a site's mapping script",
        "wms/dispatch/mapping_script.py",
        [
            ("bytes", mapping_script.ANSWER_LIMIT),
            ("options", mapping_script.OPTIONS_LIMIT),
            ("characters of an option", mapping_script.OPTION_LENGTH),
        ],
    ),
    ("a pilot's output", "wms/dispatch/port.py", [("bytes", port.OUTPUT_LIMIT)]),
    (
        "an object of the sandbox store",
        "wms/transfer/stored_object.py",
        [("bytes", stored_object.MAX_OBJECT)],
    ),
    (
        "a sandbox archive (tar.gz)",
        "wms/transfer/archive.py",
        [
            ("bytes", archive.MAX_ARCHIVE),
            ("bytes expanded", _ARCHIVE.total_bytes),
            ("members", _ARCHIVE.members),
            ("levels", _ARCHIVE.depth),
            ("bytes of a name", _ARCHIVE.name_length),
        ],
    ),
    ("a scenario of a simulation (TOML)", "wms/cli/scenario_file.py", [("bytes", scenario_file.SIZE_LIMIT)]),
    ("a line of a recording", "wms/simulation/recording.py", [("bytes", recording.LINE_LIMIT)]),
    (
        "a trace (SWF)",
        "wms/replay/swf.py",
        [("bytes a line", swf.LINE_LIMIT), ("headers", swf.HEADERS_LIMIT), ("jobs", swf.JOBS_LIMIT)],
    ),
]


ENTRANCES_LEAD = """
## Where documents are parsed

What a document expands to is counted before it is expanded. A parsing process
([`wms/parsing/parser_pool.py`](../wms/parsing/parser_pool.py)) has limits of processor time and memory; owners take turns, and one has one
process at most. A process that dies is answered to the sender of its document (`TOO_EXPENSIVE`). A search for dear documents
([`tests/hostile/cost_search.py`](../tests/hostile/cost_search.py)) holds all of these to 5 ms a kB and 32 MiB.
"""
_SIZE = f"{document.SIZE_LIMIT:,} bytes, {document.DEPTH_LIMIT} levels"
ENTRANCES: list[tuple[str, str, str, str]] = [
    (
        "`POST /jobs`: one description without series",
        f"{small.SMALL_BYTES:,} bytes, expressions of {small.SMALL_EXPRESSIONS} characters",
        "nothing",
        "the gateway's event loop",
    ),
    (
        "`POST /jobs`: any other JSON",
        f"{submission_parsing.JSON_LIMIT:,} bytes, {document.DEPTH_LIMIT} levels",
        f"{expansion.SERVICE_VALUES:,} values of series, {expansion.SERVICE_BYTES:,} bytes of series and copied defaults",
        "a parsing process of the gateway",
    ),
    (
        "`POST /jobs`: lines",
        f"{submission_parsing.LINE_LIMIT:,} bytes a line, {job_submission.PART_BYTES:,} bytes or {job_submission.LINES:,} lines a part",
        "as any other JSON, for each part",
        "a parsing process of the gateway",
    ),
    (
        "bodies of all other routes, messages of all topics",
        f"{wire.PAYLOAD_LIMIT:,} bytes; fields as in [messages.md](messages.md)",
        "nothing",
        "the event loop, by a decoder for the type",
    ),
    (
        "a message to the job manager whose descriptions are small, as above",
        f"{wire.PAYLOAD_LIMIT:,} bytes",
        "nothing: series are refused",
        "the job manager's thread, some milliseconds at a time, in turns of owners",
    ),
    (
        "a message to the job manager with any other description",
        f"{wire.PAYLOAD_LIMIT:,} bytes",
        "nothing: series are refused, and more than one job",
        "a parsing process of the job manager, in turns of owners",
    ),
    (
        "lists of parameters in a message to the job manager",
        f"{wire.PAYLOAD_LIMIT:,} bytes, 20 names",
        "nothing",
        "the job manager's event loop: 30 ms at most were seen",
    ),
    (
        "requirements and rank of a job",
        f"{validation.EXPRESSION_LIMIT:,} characters, {classad.DEPTH} levels",
        "nothing",
        "with their description",
    ),
    (
        "small ads of sites, without a rule of their own",
        f"{ad_parsing.SMALL_BYTES:,} bytes, {classad.DEPTH} levels",
        f"{classad.AD_NODES:,} nodes",
        "the matcher's thread, in turns of owners",
    ),
    (
        "all other ads of sites",
        f"{classad.TEXT_BYTES:,} bytes of an ad or an expression, {classad.DEPTH} levels",
        f"{classad.AD_NODES:,} nodes",
        "a parsing process of the matcher, in turns of owners",
    ),
    (
        "stored ads and requirements, which one of the above has read",
        f"{classad.TEXT_BYTES:,} bytes",
        f"{classad.AD_NODES:,} nodes",
        "the event loop of each service that needs them, one by one",
    ),
    (
        "answers of index servers and elements (LDIF, XML, JSON)",
        f"{discovery.SIZE_LIMIT:,} bytes, {tree.DEPTH_LIMIT} levels",
        f"{discovery.LEADS_LIMIT:,} addresses",
        "threads of the resource broker or the advertiser",
    ),
    (
        "JSDL, ADL, xRSL, JDL, HTCondor's submit files, TOML",
        _SIZE,
        f"{conflicts.ARRAY_LIMIT:,} jobs, {conflicts.PARAMETERS_LIMIT:,} bytes of parameters",
        "the user's own machine alone",
    ),
]


def page() -> str:
    """Return the page."""
    parsers = [*head("What", "At most", "Parser"), *map(_line, PARSERS)]
    columns = head("Entrance", "Size and depth at most", "Expands at most to", "Parsed in")
    return "\n".join([LEAD, *parsers, ENTRANCES_LEAD, *columns, *(row(*each) for each in ENTRANCES)]) + "\n"


def _line(parser: tuple[str, str, list[Cap]]) -> str:
    what, module, caps = parser
    return row(what, ", ".join(f"{most:,} {unit}" for unit, most in caps), f"[`{module}`](../{module})")
