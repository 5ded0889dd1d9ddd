"""Every entrance at which a document from outside is read, with examples and the pieces of its language."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from services.gateway import submission_parsing
from services.gateway.routes import OPERATIONS
from services.gateway.submission_parsing import SubmissionTerms
from services.job_manager.submission.parse import DescriptionReader
from tests.unit.jobdesc.languages.test_fuzzing import SEEDS
from tests.unit.messages.examples import FULL, UNIONS, topic_of
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.discovery.document import read_index
from wms.errors import Rejected
from wms.glue.arc_json import read_arc_json
from wms.glue.classad import read_classad
from wms.glue.glue2_xml import read_xml
from wms.glue.ldif import read_ldif
from wms.ids import CommandId
from wms.jobdesc.expansion import SERVICE_BYTES, SERVICE_VALUES, Expansion
from wms.jobdesc.languages.catalogue import HTCONDOR, LANGUAGES
from wms.jobdesc.languages.translation import Language
from wms.jobdesc.validation import validate
from wms.messages import commands
from wms.messages.wire import Codec, encode

DATA = Path(__file__).parents[1] / "data"
TERMS = SubmissionTerms(name="s", client="c", strict=False, hold=False)
RAW_TERMS = msgspec.json.encode(TERMS)

PIECES = (
    b"(", b"((((a>1))))&&", b"{", b"[", b"}", b"]", b")", b'"', b"'", b"\\", b"\\\\", b",", b";", b":", b"=", b"\n", b" ", b"{}", b"{},",
    b"[],", b'"",', b"0,", b"a.b.", b"a && ", b"!", b"-", b"1+", b"a?b:", b"a=?=b||", b"//", b"/*", b"*/", b"#", b"$(a)", b"$(b)$(b)",
    b"%s", b"{n}", b"{a}", b"{{a}}", b"\xc3\xa9", b"\xf0\x9f\x92\xa9", b"\\ud800", b"\\u0041", b"9" * 20, b"1-1000000,", b"queue 1000000\n",
    b'{"start":0,"step":1,"count":10000}', b'"array":1000000,', b'"p":{"start":0,"factor":1.0000001},', b'"defaults":{"executable":"x"},',
    b'"jobs":[{},{},{}],', b'{"executable":"x"},', b'{"executable":"x","requirements":"a>1"}\n', b'"unknown_key":0,', b'"requirements":"a>1",',
    b'regexp("a*b*c*d*", other.x)', b'stringListMember("a","a,b,c")', b"[a=1;b=a]", b"&(executable=x)", b"+(executable=x)",
    b"<a>", b"</a>", b"<a b='c'/>", b"&amp;", b"<!--x-->", b"<![CDATA[x]]>", b'<!DOCTYPE a [<!ENTITY b "b">]>', b"&b;",
    b"<f:Loop start='1' end='1000000'/>", b"dn: a=b,c=d\n", b"objectClass: GlueCE\n", b"a:: YWJj\n", b"http://a.b/c?d=e&", b"../", b"a/" * 20,
)  # fmt: skip


def _queues(document: bytes) -> int:
    return document.lower().count(b"queue")


def _none(_document: bytes) -> int:
    return 0


class Entrance(msgspec.Struct, frozen=True):
    """A place where documents are read."""

    name: str
    read: Callable[[bytes], object]
    """Reads a document, or raises Rejected."""
    seeds: tuple[bytes, ...]
    pieces: tuple[bytes, ...] = PIECES
    makes: Callable[[bytes], int] = _none
    """Returns how many descriptions a document may make by words of a few bytes. Such a reader is on its user's own machine alone."""


JSON = (
    b'{"executable": "x", "arguments": ["{n}"], "array": 3, "parameters": {"a": {"start": 1, "step": 2}}}',
    b'{"executable":"x","array":1000000,"parameters":{'
    + b",".join(b'"p%d":{"start":0,"step":1}' % n for n in range(20))
    + b"}}",
    b'{"defaults":{"executable":"x","environment":{"A":"b"}},"jobs":[{},{"name":"a"}]}',
    b'[{"executable":"x","requirements":"other.a > 1 && regexp(\\"a.*b\\", other.b)","rank":"-other.c"}]',
    b'{"executable":"x","after":["1-1000,7"],"inputs":[{"name":"a","sources":["http://x/y"]}],"attributes":{"a":[1,"b"]}}',
    b'{"executable":"x","outputs":[{"name":"a","targets":["s3://x/y"]}],"output_sandbox":["**/a*"],"preferences":{"objective":"earliest-start"}}',
)  # fmt: skip


def _small(document: bytes) -> None:
    submission_parsing.messages_of_small(document, TERMS)


def _submitted(document: bytes) -> None:
    for _ in DescriptionReader().read(
        commands.Submit(command_id=CommandId("c"), jobs=(msgspec.Raw(document),))
    ):
        pass


def _language(language: Language) -> Callable[[bytes], None]:
    def read(document: bytes) -> None:
        with _as_at_a_service():
            language.looks_like(document)
            for job in language.read(document).jobs(lenient=True):
                validate(job)

    return read


@contextmanager
def _as_at_a_service() -> Iterator[None]:
    """Let documents expand to what a service allows. On their user's own machine they may ask for a million jobs in few bytes."""
    own, Expansion.__init__.__defaults__ = Expansion.__init__.__defaults__, (SERVICE_VALUES, SERVICE_BYTES)
    try:
        yield
    finally:
        Expansion.__init__.__defaults__ = own


def _expression(document: bytes) -> None:
    parsed = Expression.parse(_text(document))
    _ = parsed.text, parsed.names, parsed.envelope


def _ad(document: bytes) -> None:
    _ = Ad.parse(_text(document)).text


def _text(document: bytes) -> str:
    return document.decode("utf-8", "replace")


def _codecs() -> Iterator[Entrance]:
    seeds: dict[str, list[bytes]] = {}
    for name, message in FULL.items():
        seeds.setdefault(topic_of(name.partition(".")[0]), []).append(encode(message))
    for topic, union in UNIONS.items():
        codec: Codec[Any] = Codec(union)
        if topic in seeds:
            yield Entrance(topic, codec.decode, tuple(seeds[topic]))


def _bodies() -> Iterator[Entrance]:
    """Yield the routes of the gateway whose bodies are decoded as a type."""
    for each in OPERATIONS:
        if each.body is not None and each.path not in {"/jobs", "/queries", "/commands", "/messages"}:
            decoder = msgspec.json.Decoder(each.body)

            def read(document: bytes, decoder: Any = decoder) -> None:
                try:
                    decoder.decode(document)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise Rejected("BODY_INVALID", str(error)) from None

            yield Entrance(f"{each.method} {each.path}", read, (b"{}", b'{"a":[{"b":"c"}]}'))


def _data(*names: str) -> tuple[bytes, ...]:
    return tuple((DATA / name).read_bytes()[:9_000] for name in names)


_OLD_AD, _AD = _data("classad/egee-ce.ad", "glue/glite.ad")
ENTRANCES: tuple[Entrance, ...] = (
    Entrance("POST /jobs, small", _small, JSON),
    Entrance("POST /jobs", lambda document: submission_parsing.parse_document(document, RAW_TERMS), JSON),
    Entrance("POST /jobs, lines", lambda document: submission_parsing.parse_lines(document.strip(), RAW_TERMS), JSON),
    Entrance("a Submit's job", _submitted, JSON),
    *(
        Entrance(f"a document in {each.title}", _language(each), SEEDS, makes=_queues if each is HTCONDOR else _none)
        for each in LANGUAGES
    ),
    Entrance("an expression", _expression, (b"other.a > 1 && (my.b || c =?= undefined)", *_data("classad/egee-requirements.txt"))),
    Entrance("an ad", _ad, (_OLD_AD, _AD, b"[a = 1; b = a + 1; c = {a, b}]")),
    *_codecs(),
    *_bodies(),
    Entrance("GLUE in LDIF", read_ldif, _data("glue/bdii.ldif", "glue/arc.ldif")),
    Entrance("GLUE in XML", read_xml, _data("glue/arc.xml")),
    Entrance("GLUE in JSON", read_arc_json, _data("glue/arc.json")),
    Entrance("GLUE as an ad", lambda document: read_classad(_text(document)), (_AD,)),
    Entrance("an index", lambda document: read_index(document, "dc=x"), _data("glue/bdii.ldif", "glue/arc.json")),
)  # fmt: skip
