"""Maps requirements on hosts to a batch system's options: of sbatch, qsub and bsub, relations of xRSL, commands of HTCondor.

A mapping has a *rule* for each attribute of a host that can be asked for. A rule is an option and a text in which `{value}`
stands for the bound's value, and `{value*60}` or `{value/1024}` for the value in other units. Sites add rules, and replace the
built-in ones, in TOML:

    [slurm.mapping]
    GlueHostApplicationSoftwareRunTimeEnvironment = "--constraint={value}"
    "GlueHostBenchmarkSI00 <=" = "--constraint=slow"

Subsets of the nodes of PBS and LSF are written as in their manuals: `-l nodes=1:{value}`, `-l select=1:{value}=true`,
`-R "select[{value}]"`, `-R "rusage[{value}=1]"`. A rule whose key is a name alone serves lower bounds, equal texts, members of
lists, and attributes that must be true; a rule for another relation names the relation. Values come from anyone's job. So a value is put
into a text only if it is a number, or a word of letters, digits and `_.+/-` that begins with a letter or digit. In HTCondor's expressions
values are ClassAd texts and may have blanks.
"""

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from wms.classad.writing import literal
from wms.dispatch.port import Request
from wms.errors import Rejected, shown
from wms.provisioning.host_requirements import HostTerm, UncoveredTerm

Kind = Literal["slurm", "arc", "htcondor", "pbs", "pbspro", "lsf"]

WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,99}")
_WORDS = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/ -]{0,99}")
NUMBER_LIMIT = 2**31 - 1
_KEY = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]{0,254})\s*(>=|<=|==|member)?\s*")
_SECTION = re.compile(r"""-R\s+(["']?)\s*([a-z]+)\[(.*)\]\s*\1""")
"""A pattern for bsub options with one section of a resource requirement, such as `-R "rusage[mem=1]"`."""
_TEMPLATE = re.compile(r"(?:--|-l\s+)?([+-]?[A-Za-z][A-Za-z0-9_-]*)\s*=\s*(\S.*)")
_VALUE = re.compile(r"\{value(?:\s*([*/])\s*([1-9][0-9]{0,8}))?\}")
_NUMBERED = re.compile(r"(\(?.*=)\s*([0-9]{1,10})(M?\)?)")
_NAME_ENDS = re.compile("[:=]")
_NO_VALUE = re.compile(r"[{}]")

NAMES: Mapping[Kind, Mapping[str, tuple[str, int]]] = {
    "slurm": {
        "mem": ("memory_mb", 1),
        "cpus-per-task": ("cores", 1),
        "time": ("walltime_seconds", 60),
        "constraint": ("constraint", 1),
        "gres": ("gres", 1),
    },
    "arc": {"memory": ("memory_mb", 1), "count": ("cores", 1), "walltime": ("walltime_seconds", 60)},
    "htcondor": {
        "request_memory": ("memory_mb", 1),
        "request_cpus": ("cores", 1),
        "allowed_job_duration": ("walltime_seconds", 1),
        "requirements": ("constraint", 1),
    },
    "pbs": {
        "mem": ("memory_mb", 1),
        "ppn": ("cores", 1),
        "walltime": ("walltime_seconds", 1),
        "nodes": ("constraint", 1),
    },
    "pbspro": {
        "mem": ("memory_mb", 1),
        "ncpus": ("cores", 1),
        "walltime": ("walltime_seconds", 1),
        "select": ("constraint", 1),
    },
    "lsf": {
        "mem": ("memory_mb", 1),
        "n": ("cores", 1),
        "W": ("walltime_seconds", 60),
        "select": ("constraint", 1),
        "rusage": ("gres", 1),
    },
}
"""The options of each middleware that set a field of a request, with the field and the factor from the option's value to the field's."""
_OPTIONS = {
    kind: {field: (option, unit) for option, (field, unit) in names.items()} for kind, names in NAMES.items()
}
_NUMBERS = ("memory_mb", "cores", "walltime_seconds")

_ANYWHERE = {
    "MaxRAM": "memory_mb={value}",
    "NumberOfProcessors": "cores={value}",
    "GlueHostMainMemoryRAMSize": "memory_mb={value}",
    "GlueCEPolicyMaxWallClockTime": "walltime_seconds={value*60}",
    "GlueCEPolicyMaxCPUTime": "walltime_seconds={value*60}",
}
BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "slurm": {
        **_ANYWHERE,
        "GlueHostArchitectureSMPSize": "--mincpus={value}",
        "GPUNumber": "--gres=gpu:{value}",
    },
    "arc": {
        **_ANYWHERE,
        "GlueHostApplicationSoftwareRunTimeEnvironment": "runtimeenvironment={value}",
        "GlueHostArchitecturePlatformType": "architecture={value}",
    },
    "htcondor": {
        **_ANYWHERE,
        "GPUNumber": "request_gpus={value}",
        "GlueHostArchitectureSMPSize": "requirements=TARGET.TotalCpus >= {value}",
        "GlueHostArchitecturePlatformType": "requirements=TARGET.Arch == {value}",
        "GlueHostOperatingSystemName": "requirements=TARGET.OpSysName == {value}",
    },
    "pbs": {**_ANYWHERE, "GPUNumber": "-l nodes=1:gpus={value}"},
    "pbspro": {**_ANYWHERE, "GPUNumber": "-l select=1:ngpus={value}"},
    "lsf": {
        **_ANYWHERE,
        "GPUNumber": "-gpu=num={value}",
        "GlueHostArchitectureSMPSize": "-R select[ncpus>={value}]",
    },
}
"""The built-in rules by middleware. Slurm's constraints, PBS's properties and LSF's resources have none, since their names differ by site."""


class OptionRule(NamedTuple):
    """By which option of the middleware a host with some attribute is requested.

    `field` is the field of the request that the option sets; "" if there is none. `factor` converts the bound's value to the field's unit.
    """

    option: str
    field: str
    text: str
    """The option's value, with `{}` in place of the bound's value."""
    factor: Fraction


class ExtendedRequest(Struct, frozen=True):
    """A request extended by bounds on hosts. `asked` says in words which bounds it expresses, `unasked` which it does not and why."""

    request: Request
    asked: tuple[str, ...] = ()
    unasked: tuple[UncoveredTerm, ...] = ()
    bounds: tuple[HostTerm, ...] = ()
    """The bounds that the request expresses."""
    question: str = ""
    """The question that the site's mapping script must answer before a pilot can be sent; empty: none."""
    avoided: str = ""
    """Why no pilot can be sent now, in words; empty if one can."""


class HostMapping:
    """The rules by which hosts with certain attributes are requested at one computing element. `kind` is its middleware."""

    def __init__(self, kind: Kind, own: Mapping[str, str] | None = None) -> None:
        """Parse the built-in rules of the middleware, and the site's rules `own`, which take precedence. Raise Rejected for a malformed rule."""
        self._kind = kind
        self._rules = {key_of(key): self._rule(key, text) for key, text in BUILT_IN[kind].items()}
        self._rules |= {key_of(key): self._rule(key, text) for key, text in (own or {}).items()}
        names = {key_of(key)[0] for key in own or {}} | {key_of(key)[0] for key in BUILT_IN[kind]}
        policies = {name for name in names if not name.startswith(("gluehost", "gpu"))}
        self.forwarded = frozenset(names - (policies - {key_of(key)[0] for key in own or {}}))
        """Attributes, in lower case, that are requested even if the element's ad decides them: those of built-in rules on hosts, and the site's."""

    def ask(self, base: Request, bounds: Iterable[HostTerm]) -> ExtendedRequest:
        """Return `base`, a usual pilot's request, extended by those bounds for which there are rules. The result also names the others."""
        asked, said, unasked, met = base, list[str](), list[UncoveredTerm](), list[HostTerm]()
        for bound in bounds:
            try:
                asked, words = self._add(asked, bound)
            except CannotAsk as why:
                unasked.append(UncoveredTerm(str(bound), str(why)))
            else:
                said.append(f"{bound} as {words}")
                met.append(bound)
        return ExtendedRequest(asked, tuple(said), tuple(unasked), tuple(met))

    def option(self, text: str) -> tuple[OptionRule, int | None]:
        """Parse an option with a fixed value, such as `--mem=2`. Return its rule, and the number in the unit of the rule's field.

        The number is None if the option sets no numeric field. Raise Rejected for a text that is no option, CannotAsk for too large a number.
        """
        if numbered := _NUMBERED.fullmatch(text):
            rule = self._rule(text, f"{numbered[1]}{{value}}{numbered[3]}")
            if rule.field in _NUMBERS:
                return rule, number_of(int(numbered[2]) * rule.factor)
        return self._rule(text, text), None

    def option_name(self, text: str) -> str:
        """Return the bare name of an option, `constraint` for `--constraint`. Raise Rejected if the text is no option."""
        return self._rule(text, f"{text}={{value}}").option

    def with_option(self, request: Request, rule: OptionRule, number: int | None) -> tuple[Request, str]:
        """Return the request with an option added, and the option's text. `number` is the option's value in the field's unit, None without one.

        Raise CannotAsk if the request has another value for the option already.
        """
        return self._with(request, rule, rule.text) if number is None else self._more(request, rule, number)

    def _rule(self, key: str, text: str) -> OptionRule:
        plain = text.strip()
        if self._kind == "arc" and plain.startswith("(") and plain.endswith(")"):
            plain = plain[1:-1]
        if self._kind == "lsf" and (section := _SECTION.fullmatch(plain)):
            plain = f"{section[2]}={section[3]}"
        found = _TEMPLATE.fullmatch(plain)
        values = _VALUE.findall(plain)
        if (
            found is None
            or len(values) > 1
            or _NO_VALUE.search(_VALUE.sub("", plain))
            or not plain.isprintable()
        ):
            raise Rejected(
                "MAPPING_INVALID", f"{shown(key, 80)}: no option with one {{value}}: {shown(text, 80)}"
            )
        option, body = found.groups()
        if self._kind in ("pbs", "pbspro") and option in ("nodes", "select"):
            body = body.removeprefix("1:")
        if self._kind == "lsf":
            option = option.removeprefix("-")
        field, unit = NAMES[self._kind].get(option, (option if option in _NUMBERS else "", 1))
        factor = Fraction(unit)
        for operator, number in values:
            factor *= (
                1 if not operator else Fraction(int(number)) if operator == "*" else Fraction(1, int(number))
            )
        body = _VALUE.sub("{}", body)
        if field in _NUMBERS:
            body = body.removesuffix("M") if field == "memory_mb" else body
            if body != "{}":
                raise Rejected(
                    "MAPPING_INVALID",
                    f"{shown(key, 80)}: {option} is a number, and no more: {shown(text, 80)}",
                )
        return OptionRule(option, field, body, factor)

    def _add(self, request: Request, bound: HostTerm) -> tuple[Request, str]:
        rule = self._rules.get((bound.attribute, _RULED[bound.relation]))
        rule = rule or (self._rules.get((bound.attribute, "")) if _is_plain(bound) else None)
        if rule is None:
            raise CannotAsk("this element has no rule for it")
        if rule.field in _NUMBERS:
            return self._more(request, rule, _number(bound, rule.factor))
        return self._with(
            request, rule, rule.text.format(self._said(bound, rule)) if "{}" in rule.text else rule.text
        )

    def _with(self, request: Request, rule: OptionRule, text: str) -> tuple[Request, str]:
        """Return the request with an option added that has a text as its value, and the option as people write it."""
        match rule.field:
            case "constraint":
                changed = replace(request, constraint=self._constraint(request.constraint, text))
            case "gres":
                changed = replace(request, gres=_joined(request.gres, text))
            case _:
                changed = replace(request, attributes=_attributes(request.attributes, rule.option, text))
        return changed, self._spelt(rule.option, text)

    def _more(self, request: Request, rule: OptionRule, number: int) -> tuple[Request, str]:
        """Return the request with the field of the rule raised to `number`, if it is lower, and the text of the option for it."""
        most = max(getattr(request, rule.field), number)
        changes: dict[str, Any] = {rule.field: most}
        option, unit = _OPTIONS[self._kind][rule.field]
        unit_said = "M" if self._kind == "slurm" and rule.field == "memory_mb" else ""
        return replace(request, **changes), self._spelt(option, f"{-(-most // unit)}{unit_said}")

    def _spelt(self, option: str, text: str) -> str:
        """Return an option and its value in the middleware's syntax, such as `--mem=2000M` for Slurm."""
        match self._kind:
            case "slurm":
                return f"--{option}={text}"
            case "arc":
                return f"({option}={text})"
            case "pbs" | "pbspro":
                return _spelt_for_pbs(option, text)
            case "lsf":
                return _spelt_for_lsf(option, text)
            case _:
                return f"{option}={text}"

    def _said(self, bound: HostTerm, rule: OptionRule) -> str:
        if isinstance(bound.value, bool):
            return "true" if bound.value else "false"
        if not isinstance(bound.value, str):
            return str(_number(bound, rule.factor))
        if self._kind == "htcondor" and rule.field == "constraint" and _WORDS.fullmatch(bound.value):
            return literal(bound.value)
        if not WORD.fullmatch(bound.value):
            raise CannotAsk("its value is no plain word")
        return bound.value

    def _constraint(self, before: str, text: str) -> str:
        if self._kind == "htcondor":
            return f"({before}) && ({text})" if before else text
        if self._kind == "lsf":
            return " && ".join(dict.fromkeys(each for each in (before, text) if each))
        if self._kind in ("pbs", "pbspro"):
            return _chunk(before, text)
        if before and not set(before).isdisjoint("|[]()*"):
            raise CannotAsk(f"the element's own constraint {before} has no place for another")
        return "&".join(dict.fromkeys(each for each in (*before.split("&"), text) if each))


class CannotAsk(Exception):  # noqa: N818 - no error: it is told, and the node is looked at instead
    """No option of the middleware can express a bound on hosts; the text says why."""


_RULED = {">=": ">=", ">": ">=", "<=": "<=", "<": "<=", "==": "==", "member": "member"}


def _is_plain(bound: HostTerm) -> bool:
    """Return whether a rule without a relation serves this bound: a number's lower bound or value, an equal or listed text, or "true"."""
    match bound.value:
        case bool():
            return bound.value
        case str():
            return bound.relation in ("==", "member")
        case _:
            return bound.relation in (">=", ">", "==")


def key_of(key: str) -> tuple[str, str]:
    """Parse a rule's key, such as `Name >=`, into attribute in lower case and relation, "" without one. Raise Rejected if malformed."""
    found = _KEY.fullmatch(key)
    if found is None:
        raise Rejected(
            "MAPPING_INVALID", f"no attribute with or without >=, <=, == or member: {shown(key, 80)}"
        )
    return found[1].lower(), found[2] or ""


def _number(bound: HostTerm, factor: Fraction) -> int:
    """Return the bound's number, times `factor`, as a whole number that meets the bound. Raise CannotAsk if it is none, or too large."""
    if isinstance(bound.value, str) or not math.isfinite(bound.value):
        raise CannotAsk("its value is no number")
    exact = Fraction(bound.value)
    whole = {">": math.floor(exact) + 1, "<": math.ceil(exact) - 1}.get(bound.relation)
    exact = (exact if whole is None else Fraction(whole)) * factor
    return number_of(math.floor(exact) if bound.relation in ("<=", "<") else exact)


def number_of(exact: Fraction | int) -> int:
    """Return the number rounded up to a whole one, as submit options need it.

    Raise CannotAsk if it is negative or above `NUMBER_LIMIT`.
    """
    number = math.ceil(exact)
    if not 0 <= number <= NUMBER_LIMIT:
        raise CannotAsk("its value is beyond all bounds")
    return number


def _joined(before: str, text: str) -> str:
    names = {_NAME_ENDS.split(each)[0] for each in before.split(",") if each}
    if before and text not in before.split(",") and _NAME_ENDS.split(text)[0] in names:
        raise CannotAsk(f"{before} is asked for already")
    return ",".join(dict.fromkeys(each for each in (*before.split(","), text) if each))


def _chunk(before: str, text: str) -> str:
    """Return the `:`-separated properties of a PBS node with one more. A property with a number keeps the larger one.

    Raise CannotAsk if the text would begin another node, or a property has another value already.
    """
    if "+" in text:
        raise CannotAsk("+ would begin another node")
    found = dict(each.partition("=")[::2] for each in before.split(":") if each)
    name, _, value = text.partition("=")
    joined = _attributes(found, name, value)
    return ":".join(f"{each}={said}" if said else each for each, said in joined.items())


def _spelt_for_pbs(option: str, text: str) -> str:
    if option in ("ppn", "nodes"):
        return f"-l nodes=1:{'ppn=' if option == 'ppn' else ''}{text}"
    if option in ("ncpus", "select"):
        return f"-l select=1:{'ncpus=' if option == 'ncpus' else ''}{text}"
    return (
        f"{option} {text}"
        if option.startswith("-")
        else f"-l {option}={text}{'mb' if option == 'mem' else ''}"
    )


def _spelt_for_lsf(option: str, text: str) -> str:
    if option == "mem":
        return f'-R "rusage[mem={text}MB]"'
    if option in ("select", "rusage", "order", "affinity", "cu", "same"):
        return f'-R "{option}[{text}]"'
    return f"-{option} {text}"


def _attributes(before: Mapping[str, str], option: str, text: str) -> dict[str, str]:
    said = before.get(option, text)
    if said.isdecimal() and text.isdecimal():
        return {**before, option: str(max(int(said), int(text)))}
    if said != text:
        raise CannotAsk(f"{option}={said} is asked for already")
    return {**before, option: text}
