"""HTCondor's submit files: each `queue` statement becomes one or more descriptions, of an array if they queue several jobs.

Source: the manual of HTCondor, condor_submit. A document's jobs are counted by `$(Process)` across its `queue` statements, as in one cluster.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from wms.jobdesc.array import INDEX
from wms.jobdesc.document import check_count, text_of, unreadable
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.languages.condor_commands import CATALOGUE, attribute, entry_of, split_arguments
from wms.jobdesc.languages.condor_files import all_outputs
from wms.jobdesc.languages.condor_job import CondorJob, origin_of
from wms.jobdesc.languages.condor_jobs import (
    BEGIN,
    QueuedJobs,
    columns_of,
    groups,
    mark,
    parameter_names,
    with_placeholders,
)
from wms.jobdesc.languages.condor_macros import MacroError, names_in
from wms.jobdesc.languages.condor_text import Command, QueueStatement, parse
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.submit_machine import SubmitMachine
from wms.jobdesc.languages.translation import Translation
from wms.jobdesc.loss_report import Fate, LossNotes, LossReport, Origin

NAME: Final = "htcondor"
SIZE_LIMIT = 4 * 1024 * 1024
LOOKED_AT: Final = 65_536
VALUES_A_COMMAND: Final = 10
"""As so many values a command counts in what a document expands to, for each description that it is put into: it takes as long."""
TEMPLATED: Final = frozenset(
    {"arguments", "environment", "output", "error", "transfer_output_files", "description"}
)
"""The commands whose fields may have placeholders."""
_ORDER: Final = ("request_cpus", "request_memory", "environment")
"""The commands to which others refer; they are taken first."""
_NEVER_ABSENT: Final = ("executable",)
"""The commands that a job needs. Any other without a value is absent to HTCondor, which has two quotes for a value that is empty."""

_QUEUE = re.compile(rb"^[ \t]*queue\b(?![ \t]*=)", re.MULTILINE | re.IGNORECASE)
# A text over several lines of TOML may hold such a line too.
_TOML_TEXT = re.compile(rb"""[=\[,]\s*(?:\"{3}|'{3})|^[ \t]*\[\[?[^\n]*\][ \t]*$""", re.MULTILINE)


def looks_like(data: bytes) -> bool:
    """Return whether a document is probably a submit file.

    It must have a `queue` statement near its beginning or end, and there no text that only TOML has.
    """
    ends = data[:LOOKED_AT], data[-LOOKED_AT:]
    return any(map(_QUEUE.search, ends)) and not any(map(_TOML_TEXT.search, ends))


def read(data: bytes, machine: SubmitMachine | None = None) -> Translation:
    """Return the translation of an HTCondor submit file. `machine` has the files and variables to which it may refer.

    Raise InvalidDescription if the text is no submit file, or needs of the submit machine what cannot be had. Raise Rejected if
    the document is too large, not UTF-8, or makes too many jobs.
    """
    text = text_of(data, SIZE_LIMIT)
    if BEGIN in text:
        raise unreadable("has characters for private use")
    found = drafted(NAME, list(_drafts(parse(text, machine), machine)))
    # Descriptions of one statement have most notes in common.
    report = LossReport(tuple(dict.fromkeys(found.report.entries)))
    return msgspec.structs.replace(found, report=report, problems=tuple(dict.fromkeys(found.problems)))


def _drafts(queues: Sequence[QueueStatement], machine: SubmitMachine | None) -> Iterator[JobDraft]:
    notes, first, expansion, told = LossNotes(), 0, Expansion(), set[Command]()
    for queue in queues:
        check_count(1, first + queue.jobs)
        try:
            jobs = QueuedJobs(queue, machine, first, expansion)
            for draft in _QueueDrafts(jobs, machine, notes, told).drafts():
                yield draft
                expansion.take(VALUES_A_COMMAND * (1 + len(queue.commands)), 0)
        except MacroError as fault:
            raise unreadable(str(fault), queue.line) from None
        first += queue.jobs


class _QueueDrafts:
    """The drafts of one `queue` statement. `told` are the commands of the document that are noted as omitted, once each."""

    def __init__(
        self, jobs: QueuedJobs, machine: SubmitMachine | None, notes: LossNotes, told: set[Command]
    ) -> None:
        self._jobs = jobs
        self._machine = machine
        self._notes = notes
        self._told = told
        self._queue = Command("queue", "", jobs.queue.line)

    def drafts(self) -> Iterator[JobDraft]:
        if not self._jobs.count:
            draft = JobDraft(self._notes)
            draft.problem(origin_of(self._queue), "queues no job")
            yield draft
            return
        given = self._untold(_commands(self._jobs.queue))
        rest = {key: each for key, each in given.items() if _fate(key) != "omitted"}
        texts = {key: self._template(key, command) for key, command in given.items()}
        split = [key for key, text in texts.items() if not self._stays(key, text)]
        self._jobs.expansion.take(len(split) * self._jobs.count, 0)
        keys = [lambda job, key=key: self._split_key(key, texts[key], job) for key in split]
        for group in groups(keys, self._jobs.count).values():
            yield self._draft(given, texts, split, group)
            given = rest  # The first draft has noted what is omitted.

    def _untold(self, given: Mapping[str, Command]) -> Mapping[str, Command]:
        """Return the commands without those that an earlier statement has noted as omitted. Those that are left are noted by the next draft."""
        omitted = {key for key in given if _fate(key) == "omitted"}
        found = {key: each for key, each in given.items() if key not in omitted or each not in self._told}
        self._told.update(given[key] for key in omitted)
        return found

    def _template(self, key: str, command: Command) -> str:
        """Return the value of a command as a template; as it stands if nothing is done with it."""
        if _fate(key) == "omitted":
            return command.value
        try:
            return self._jobs.template(command.value)
        except MacroError as fault:
            raise unreadable(f"{command.name}: {fault}", command.line) from None

    def _stays(self, key: str, text: str) -> bool:
        """Return whether a command is one template for all jobs."""
        return BEGIN not in text or (key in TEMPLATED and self._jobs.is_template(text))

    def _split_key(self, key: str, text: str, job: int) -> object:
        value = self._jobs.filled(text, job)
        return len(split_arguments(value) or ()) if key == "arguments" else value

    def _draft(
        self,
        given: Mapping[str, Command],
        texts: Mapping[str, str],
        split: Sequence[str],
        group: Sequence[int],
    ) -> JobDraft:
        draft, columns = JobDraft(self._notes), dict[str, Sequence[str]]()
        commands = dict[str, Command]()
        for key, command in given.items():
            text = texts[key]
            if len(group) == 1 or (key in split and key != "arguments"):
                text = self._jobs.filled(text, group[0])
            if text or key in _NEVER_ABSENT or key.startswith("my."):
                commands[key] = Command(command.name, text, command.line)
            else:
                draft.kept(origin_of(command), "has no value, as if it were not there")
        job = CondorJob(draft, commands, self._machine)
        ordered = sorted(commands, key=lambda key: _ORDER.index(key) if key in _ORDER else len(_ORDER))
        for key in ordered:
            if key == "arguments" and key in split and len(group) > 1:
                columns |= self._words(draft, commands[key], group)
            else:
                _take(job, key, commands[key])
        if "transfer_output_files" not in commands:
            all_outputs(job, self._queue)
        self._sweep(draft, group, columns)
        return draft

    def _words(self, draft: JobDraft, command: Command, group: Sequence[int]) -> Mapping[str, Sequence[str]]:
        """Put arguments into the draft, as many in each job, of which each that differs is a parameter. Return their columns."""
        rows = [split_arguments(self._jobs.filled(command.value, job)) for job in group]
        words, columns = list[str](), dict[str, Sequence[str]]()
        for number, values in enumerate(zip(*(row or () for row in rows), strict=True), 1):
            if len(set(values)) == 1:
                words.append(values[0])
            else:
                columns[f"argument:{number}"] = values
                words.append(mark(f"argument:{number}"))
        if None in rows:
            draft.problem(origin_of(command), "has a double quote within the old syntax")
        else:
            draft.put("arguments", words, origin_of(command))
        return columns

    def _sweep(
        self,
        draft: JobDraft,
        group: Sequence[int],
        columns: Mapping[str, Sequence[str]],
    ) -> None:
        """Make the draft an array of the group's jobs, with the columns of which its texts have marks as parameters."""
        origin = Origin("queue", self._jobs.queue.line)
        if len(group) == 1:
            draft.kept(origin)
            return
        used = set[str]()

        def collect(text: str) -> str:
            used.update(columns_of(text))
            return text

        draft.map_texts(collect)
        is_whole = len(group) == self._jobs.count and self._jobs.first == 0
        names = parameter_names(used, is_whole=is_whole)
        draft.map_texts(lambda text: with_placeholders(text, names))
        draft.put("array", len(group), origin)
        known = {**self._jobs.columns([each for each in names if each not in columns], group), **columns}
        for each, name in names.items():
            if name != INDEX:
                draft.put_item("parameters", name, list(known[each]), origin)


def _commands(queue: QueueStatement) -> Mapping[str, Command]:
    """Return the commands of a statement by their names in the catalogue, the variables of its items that are commands among them.

    What is no command, and is used by `$(name)` or stands alone, is a macro of the author.
    """
    variables = {name.lower(): Command(name, f"$({name})", queue.line) for name in queue.items.names}
    found, macros = dict[str, Command](), dict[str, Command]()
    for key, command in {**queue.commands, **variables}.items():
        name = entry_of(key)
        if name is not None and not name.endswith("*"):
            found[name] = command
        elif key.startswith("my."):
            found[key] = command
        else:
            macros[key] = command
    used = {
        each for command in queue.commands.values() for each in names_in(command.value)
    } | variables.keys()
    return found | {key: command for key, command in macros.items() if key not in used}


def _fate(key: str) -> Fate:
    name = entry_of(key)
    return CATALOGUE[name].fate if name else "kept" if key.startswith("my.") else "omitted"


def _take(job: CondorJob, key: str, command: Command) -> None:
    name = entry_of(key)
    if name is not None:
        CATALOGUE[name].handler(job, command)
    elif key.startswith("my."):
        attribute(job, command)
    else:
        job.draft.omitted(origin_of(command), "is no command, and no macro that is used")
