"""A site's mapping script: the questions that it gets, the checks of its answers, and the options that follow from them.

The script maps requirements on hosts to options of the batch system if rules do not suffice. It reads and prints a JSON object:

    {"middleware": "slurm", "requirements": [{"attribute": "scratchmb", "relation": ">=", "value": 2000, "text": "scratchmb >= 2000"}],
     "request": {"cores": 1, "memory_mb": 0, "walltime_seconds": 3600, "constraint": "", "gres": "", "attributes": {}},
     "site": "alpha", "ce": "main"}

    {"options": ["--tmp=2"], "asked": ["scratchmb >= 2000"]}

The requirements come from anyone's job, and a script may copy them into its answer. So the script gets only plain words and
numbers. It can give only the options that its configuration names, and the code that reads rules reads these, too.

This module is pure; `wms.dispatch.bubblewrap` runs the script.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from wms.classad.expression import Expression
from wms.decoding import UNDECODABLE
from wms.dispatch.mapping import WORD, CannotAsk, ExtendedRequest, HostMapping, Kind, OptionRule, key_of
from wms.dispatch.port import Request
from wms.errors import Rejected, shown
from wms.provisioning.host_requirements import HostTerm, Plain, UncoveredTerm

ANSWER_LIMIT = 16_384
"""How many bytes a mapping script may print."""
QUESTION_LIMIT = 16_384
"""How many characters a question to a mapping script may have, without the names of site and computing element."""
OPTIONS_LIMIT = 16
OPTION_LENGTH = 200
ASKED_LIMIT = 100
_REQUIREMENT_LENGTH = 500
_LARGEST = 2**53

_SIGNS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+/:=@%-")
_MORE_SIGNS: Mapping[tuple[Kind, str], str] = {
    ("slurm", "constraint"): "&",
    ("slurm", "gres"): ",",
    ("lsf", "constraint"): "&<>! ",
    ("lsf", "gres"): ",",
    ("htcondor", "constraint"): '&|<>!*?()" ',
}
"""Further characters that a script may use in an option's value, by middleware and field of the request.

Alternatives (`|`) could weaken the element's own constraint. So they are allowed for HTCondor alone, where each constraint is put into
brackets.
"""

ANSWERS_TOLD = 200
"""How many of a script's latest answers are stored, so that `wms why` can explain by them."""
WAITS = "its mapping script is asked first"
OTHERWISE = "the site's mapping script asks for no host by it"


class MappingScript(Struct, frozen=True, kw_only=True):
    """Which attributes of hosts a site's mapping script decides, and which batch options it may give."""

    attributes: tuple[str, ...]
    """The attributes of hosts whose bounds the script turns into options. Rules do not apply to them."""
    options: tuple[str, ...]
    """The names of the options that the script may give."""


class ScriptAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """The answer that a mapping script prints: options of the batch system, and the requirements that these options express."""

    options: Annotated[
        tuple[Annotated[str, Meta(max_length=OPTION_LENGTH)], ...], Meta(max_length=OPTIONS_LIMIT)
    ]
    asked: Annotated[
        tuple[Annotated[str, Meta(max_length=_REQUIREMENT_LENGTH)], ...], Meta(max_length=ASKED_LIMIT)
    ]
    """The requirements that `options` guarantee, by their `text` in the question: all hosts that the batch system then gives meet them."""


Outcome: TypeAlias = ScriptAnswer | str
"""The valid answer of a mapping script, or a text that says why there is none."""


class _Requirement(Struct, frozen=True):
    attribute: str
    relation: str
    value: Plain
    text: str


class _Question(Struct, frozen=True):
    middleware: Kind
    requirements: tuple[_Requirement, ...]
    request: Request


_QUESTION = msgspec.json.Decoder(_Question)
_ANSWER = msgspec.json.Decoder(ScriptAnswer)


class ScriptedMapping(HostMapping):
    """The rules for requesting hosts at one computing element, together with the answers that its mapping script has given."""

    def __init__(
        self,
        kind: Kind,
        own: Mapping[str, str],
        script: MappingScript,
        answers: Mapping[str, Outcome],
    ) -> None:
        """Make a mapping from the site's rules `own`, and the script's `answers` by question. The caller may add answers later.

        Raise Rejected for malformed rules, attributes or options, and for an attribute that has a rule and is also the script's.
        """
        super().__init__(kind, own)
        self._attributes = frozenset(each.lower() for each in script.attributes)
        self._options = frozenset(map(self.option_name, script.options))
        self._answers = answers
        if wrong := [each for each in script.attributes if not _ATTRIBUTE.fullmatch(each)]:
            raise Rejected("MAPPING_INVALID", f"the mapping script's attributes: none: {shown(wrong[0], 80)}")
        if both := self._attributes & {key_of(each)[0] for each in own}:
            raise Rejected("MAPPING_INVALID", f"{min(both)} has a rule and is the mapping script's, too")
        self.forwarded |= self._attributes

    def ask(self, base: Request, bounds: Iterable[HostTerm]) -> ExtendedRequest:
        """Return `base`, a usual pilot's request, extended by bounds: by the rules, and by the script's answers so far.

        If the script has not answered a question yet, the result names the question, and no pilot may be sent.
        """
        bounds = tuple(bounds)
        ruled = super().ask(base, [each for each in bounds if each.attribute not in self._attributes])
        theirs = [each for each in bounds if each.attribute in self._attributes]
        plain: list[HostTerm] = []
        odd: list[UncoveredTerm] = []
        for each in theirs:
            if _is_plain(each.value):
                plain.append(each)
            else:
                odd.append(UncoveredTerm(str(each), "its value is no plain word or number"))
        found = self._answered(ruled, plain) if plain else ruled
        return replace(found, unasked=(*found.unasked, *odd))

    def read(self, question: str, printed: bytes) -> Outcome:
        """Parse and check what the script printed in answer to a question. Return the answer, or a text that says what is wrong with it."""
        try:
            answer = _ANSWER.decode(printed)
        except UNDECODABLE as error:
            return f"prints no answer: {shown(str(error), 200)}"
        asked = _QUESTION.decode(question)
        if odd := [each for each in answer.asked if each not in {one.text for one in asked.requirements}]:
            return f"answers what it was not asked: {shown(odd[0], 80)}"
        added = self._with_all(asked.request, answer.options)
        return added if isinstance(added, str) else answer

    def _answered(self, ruled: ExtendedRequest, plain: Sequence[HostTerm]) -> ExtendedRequest:
        """Return the request that the rules made, extended by the script's answer about the bounds `plain`.

        Without a valid answer, the result says why no pilot is sent, and names the question.
        """
        question = self._question(ruled.request, plain)
        if len(question) > QUESTION_LIMIT:
            return replace(
                ruled, avoided=why_avoided(f"takes no question of over {QUESTION_LIMIT:,} characters")
            )
        outcome = self._answers.get(question)
        if not isinstance(outcome, ScriptAnswer):
            return replace(ruled, question=question, avoided=why_avoided(outcome))
        added = self._with_all(ruled.request, outcome.options)
        if isinstance(added, str):
            return replace(ruled, question=question, avoided=why_avoided(added))
        request, words = added
        met = [each for each in plain if str(each) in outcome.asked]
        by = f"as {' '.join(words)} by the site's script" if words else "of no host, by the site's script"
        return ExtendedRequest(
            request,
            (*ruled.asked, *(f"{each} {by}" for each in met)),
            (*ruled.unasked, *(UncoveredTerm(str(each), OTHERWISE) for each in plain if each not in met)),
            (*ruled.bounds, *met),
        )

    def _question(self, request: Request, bounds: Iterable[HostTerm]) -> str:
        asked = (_Requirement(each.attribute, each.relation, each.value, str(each)) for each in bounds)
        ordered = tuple(sorted(asked, key=lambda each: each.text))
        return msgspec.json.encode(_Question(self._kind, ordered, request), order="deterministic").decode()

    def _with_all(self, request: Request, options: Iterable[str]) -> tuple[Request, list[str]] | str:
        """Return the request with all options of the script added, and their texts. If one is refused, return a text that says why."""
        words = []
        try:
            for each in options:
                rule, number = self.option(each)
                self._check(rule, number)
                request, written = self.with_option(request, rule, number)
                words.append(written)
        except (Rejected, CannotAsk) as error:
            why = error.message if isinstance(error, Rejected) else str(error)
            return f"gives an option that is refused: {shown(why, 300)}"
        return request, words

    def _check(self, rule: OptionRule, number: int | None) -> None:
        """Raise CannotAsk for an option that the script may not give, or whose value has characters that could begin another option."""
        if rule.option not in self._options:
            raise CannotAsk(f"{shown(rule.option, 40)} is not among the script's options")
        signs = _SIGNS.union(_MORE_SIGNS.get((self._kind, rule.field), ""))
        if number is None and not signs.issuperset(rule.text):
            raise CannotAsk(f"{rule.option} has signs that it may not have: {shown(rule.text, 80)}")
        if self._kind == "htcondor" and rule.field == "constraint":
            Expression.parse(rule.text)


_ATTRIBUTE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


def why_avoided(outcome: Outcome | None) -> str:
    """Return why no pilots are sent to a computing element, by the outcome of its mapping script; empty if the outcome is an answer.

    `outcome` is None if the script has not been asked yet.
    """
    match outcome:
        case None:
            return WAITS
        case str():
            return f"its mapping script {outcome}"
        case _:
            return ""


def _is_plain(value: Plain) -> bool:
    if isinstance(value, str):
        return WORD.fullmatch(value) is not None
    return abs(value) < _LARGEST
