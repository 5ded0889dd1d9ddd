"""The client: every request that a user may send to the system, as a method.

Longer than 400 lines, because users find all requests in this one class, and most lines are what they read about them.
"""
# ruff: noqa: A002 - what makes a call repeatable is its id, and users call it so

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from wms.client.dead_letter_client import DeadLetterClient
from wms.client.files import Fetched, fetch, members, output_of
from wms.client.job_events import JobEvents
from wms.client.job_inputs import Progress, upload_archives
from wms.client.plain_values import plain
from wms.client.query_client import FETCHES_AT_ONCE, Counts
from wms.client.result_table import result_row
from wms.client.selector import normalised, nothing_found
from wms.client.sent_program import brings_files, program_to_send
from wms.client.submission import Submission, check_description, check_id, new_id
from wms.client.submitting import submit
from wms.client.watching import JobWatch, counts_at_end, pinned
from wms.errors import Rejected
from wms.ids import AgreementId, CommandId
from wms.job.state import ENDED
from wms.jobdesc.changes import read_changes
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.matching.limits import Kind, LimitKey, LimitRule
from wms.messages import commands as ordered
from wms.messages import limits as limited
from wms.messages import replies
from wms.messages.commands import Control, Selector
from wms.transfer import Objects, open_store, upload

Action: TypeAlias = Literal["kill", "hold", "stop_and_hold", "release", "reschedule", "remove", "edit"]


class Client(DeadLetterClient):
    """A user's connection to the system; any number of calls may run concurrently.

    `timeout` bounds each call, in seconds. A call that changes something carries an id. After a timeout, repeat the call
    with the same id: it takes effect once. Calls raise Rejected if the system refuses, and Unavailable if it does not answer
    in time.
    """

    # --- submitting ------------------------------------------------------------------------------------------------

    async def submit(
        self,
        descriptions: JobDescription | Sequence[JobDescription],
        *,
        id: str | None = None,
        strict: bool = False,
        hold: bool = False,
    ) -> Submission:
        """Submit jobs; on return they are accepted and stored durably.

        Many descriptions are sent in several messages, each of which is accepted whole or not at all. The same `id` with the
        same descriptions submits nothing twice, so a failed call can be repeated. If `strict` is True, nothing is submitted
        if a job could run nowhere now. If it is False, `foreseen` of the result names such jobs. If `hold` is True, the jobs
        are Held until released.

        Values may be as on the command line: numbers among arguments and parameters, `range(3)` as a list of parameters,
        `memory_mb="2G"`, `wall_time="1h30m"`. A program such as `./fit` is sent along, unless the description brings files.

        Raise InvalidDescription, with every problem of every description, if one is invalid; nothing was sent then. Raise
        Rejected if the system refuses; the message names how much of a large submission was accepted. Raise Unavailable if
        no answer came.
        """
        given = [descriptions] if isinstance(descriptions, JobDescription) else list(descriptions)
        jobs = await self._with_programs(
            [plain(each) if isinstance(each, JobDescription) else each for each in given]
        )
        submission_id = new_id() if id is None else id
        return await submit(self._exchange, self.timeout, jobs, submission_id, strict=strict, hold=hold)

    async def upload(self, files: Mapping[str, Path | bytes] | Iterable[str | Path]) -> SandboxRef:
        """Upload files to the sandbox store as one archive, and return the archive's reference for a description's `input_sandbox`.

        `files` are paths of files or of directories with all their content. A mapping gives the names in the sandbox, each with a
        path or the content. Raise Rejected if there is no file, one is missing, or they are too many or too large.
        """
        packed = files if isinstance(files, Mapping) else await asyncio.to_thread(members, files)
        if not packed:
            raise Rejected("NO_FILES", "there is no file to send along", "name at least one")
        return await upload(self._store(), packed)

    async def upload_each(
        self, paths: Sequence[tuple[str, ...]], progress: Progress | None = None
    ) -> dict[tuple[str, ...], SandboxRef]:
        """Upload the input files of single jobs: one archive for each distinct tuple of paths. Return the references by tuple.

        `progress` is called after each upload with the number of uploaded archives and the number of all. Raise Rejected, and
        upload nothing, if a file is missing or the files are too many or too large.
        """
        return await upload_archives(self._store(), paths, progress)

    # --- ordering about --------------------------------------------------------------------------------------------

    async def kill(
        self, selector: Selector, reason: str = "", *, id: str | None = None
    ) -> replies.Controlled:
        """Kill the selected jobs; return what became of them. A job that a pilot runs ends once the pilot has stopped it.

        The answer names the jobs whose state forbids the action. `reason` goes into the jobs' history.
        """
        return await self.order("kill", selector, reason, id=id)

    async def hold(
        self, selector: Selector, reason: str = "", *, running: bool = False, id: str | None = None
    ) -> replies.Controlled:
        """Hold the selected waiting jobs: no pilot gets them until they are released.

        If `running` is True, running jobs are held too. They are stopped, and start from the beginning after their release.
        """
        return await self.order("stop_and_hold" if running else "hold", selector, reason, id=id)

    async def release(
        self, selector: Selector, reason: str = "", *, id: str | None = None
    ) -> replies.Controlled:
        """Release the selected held jobs, which then wait for a pilot again."""
        return await self.order("release", selector, reason, id=id)

    async def reschedule(
        self,
        selector: Selector,
        reason: str = "",
        *,
        changes: Mapping[str, object] | None = None,
        id: str | None = None,
    ) -> replies.Controlled:
        """Run the selected jobs again from the beginning. Running jobs are stopped first.

        `changes` are fields of a description with new values, such as `{"memory_mb": 4096}`, and are made before the jobs run
        again. With `changes` no selected job may be with a pilot.
        """
        return await self.order("reschedule", selector, reason, changes=changes, id=id)

    async def edit(
        self,
        selector: Selector,
        changes: Mapping[str, object],
        reason: str = "",
        *,
        id: str | None = None,
    ) -> replies.Controlled:
        """Change the requirements of the selected jobs. Only waiting and held jobs can be changed.

        `changes` are fields of a description with new values: `{"memory_mb": 4096, "sites": ()}`. Attributes and archives of
        `input_sandbox` are added to the present ones. An empty value clears a field. The program of a job cannot be changed.

        Raise InvalidDescription, with every problem of the changes, if one is invalid; nothing was sent then.
        """
        return await self.order("edit", selector, reason, changes=changes, id=id)

    async def remove(
        self, selector: Selector, reason: str = "", *, id: str | None = None
    ) -> replies.Controlled:
        """Delete the selected jobs, none of which may be with a pilot."""
        return await self.order("remove", selector, reason, id=id)

    async def order(
        self,
        action: Action,
        selector: Selector,
        reason: str = "",
        *,
        changes: Mapping[str, object] | None = None,
        id: str | None = None,
    ) -> replies.Controlled:
        """Apply an action to the selected jobs. The answer names the jobs whose state forbids the action; these stay unchanged.

        `changes` are fields of a description with new values, for `edit` and `reschedule`. `reason` goes into the jobs' history.
        Raise Rejected if the selector has no condition.
        """
        if selector == Selector():
            raise Rejected("NOTHING_SELECTED", f"no job is named to {action}", "name jobs, or say everything")
        order_id = new_id() if id is None else id
        check_id(order_id)
        wanted = read_changes(changes or {}) if changes or action == "edit" else {}
        control = Control(
            command_id=CommandId(order_id),
            action=action,
            selector=normalised(selector),
            reason=reason,
            client=self._exchange.client,
            changes={name: msgspec.Raw(msgspec.json.encode(value)) for name, value in wanted.items()},
        )
        return await self._exchange.ask(ordered.TOPIC, order_id, control, replies.Controlled, self.timeout)

    # --- ruling ----------------------------------------------------------------------------------------------------

    async def set_share(
        self,
        vo: str,
        group: str,
        job_share: float | None = None,
        *,
        job_sharing: bool | None = None,
        background: bool | None = None,
        private_pilots: bool | None = None,
    ) -> str:
        """Set the share of a group until it is reset, and return the share in force as text.

        `job_share` is the group's weight relative to other groups. A parameter that is None leaves its setting as it is.
        """
        return await self._rule(
            ordered.SetShare(
                command_id=CommandId(new_id()),
                vo=vo,
                owner_group=group,
                job_share=job_share,
                job_sharing=job_sharing,
                background=background,
                private_pilots=private_pilots,
                client=self._exchange.client,
            )
        )

    async def reset_share(self, vo: str, group: str) -> str:
        """Remove the share that was set for a group, so that the configured share is in force. Return that share as text."""
        return await self._rule(
            ordered.ResetShare(
                command_id=CommandId(new_id()), vo=vo, owner_group=group, client=self._exchange.client
            )
        )

    async def start_pilots(
        self,
        count: int = 1,
        *,
        site: str = "",
        ce: str = "",
        group_wide: bool = False,
        within_seconds: float = 3_600.0,
    ) -> str:
        """Order `count` private pilots, which run your jobs only. Return the order as text.

        If `group_wide` is True, they run the jobs of your group, which must share its jobs. `site` and `ce` restrict where
        they are sent (empty: anywhere). Pilots that could not be sent within `within_seconds` are not sent any more.
        """
        return await self._rule(
            ordered.StartPilots(
                command_id=CommandId(new_id()),
                count=count,
                site=site,
                ce=ce,
                group_wide=group_wide,
                within_seconds=within_seconds,
                client=self._exchange.client,
            )
        )

    async def stop_pilots(self, *orders: int) -> str:
        """Withdraw the orders for private pilots with these numbers, or all of yours if none is given. Return the withdrawn orders as text."""
        client = self._exchange.client
        return await self._rule(
            ordered.StopPilots(command_id=CommandId(new_id()), orders=orders, client=client)
        )

    async def cancel_reservations(self, agreements: Sequence[str], reason: str = "") -> str:
        """Cancel the reservations with these agreement ids, all or none, and return them as text. Their jobs are placed anew.

        Raise Rejected if a job runs in one of them.
        """
        client, named = self._exchange.client, tuple(map(AgreementId, agreements))
        return await self._rule(
            ordered.CancelReservations(
                command_id=CommandId(new_id()), agreements=named, reason=reason, client=client
            )
        )

    async def set_limit(self, limit: LimitRule) -> str:
        """Set a limit on jobs, until it is lifted or reset to the configured one, and return the limit as text."""
        client = self._exchange.client
        said = limited.Limit(**msgspec.structs.asdict(limit))
        return await self._rule(ordered.SetLimit(command_id=CommandId(new_id()), limit=said, client=client))

    async def drop_limit(self, kind: Kind, key: LimitKey, *, reset: bool = False) -> str:
        """Lift the limit of this kind and key. If `reset` is True, return to the configured limit instead. Return the change as text."""
        client, said = self._exchange.client, limited.CounterKey(*key)
        return await self._rule(
            ordered.DropLimit(command_id=CommandId(new_id()), kind=kind, key=said, reset=reset, client=client)
        )

    async def rule_site(
        self,
        action: Literal["ban", "unban", "drain", "test", "forget"],
        site: str,
        ce: str = "",
        reason: str = "",
    ) -> replies.Ruled:
        """Apply an action to a site, or to one of its computing elements (`ce`, empty for all).

        The answer contains the resulting state. After `test` it names the canaries that were sent.
        """
        rule = ordered.RuleSite(
            command_id=CommandId(new_id()),
            action=action,
            site=site,
            ce=ce,
            reason=reason,
            client=self._exchange.client,
        )
        return await self._exchange.ask(ordered.TOPIC, rule.command_id, rule, replies.Ruled, self.timeout)

    async def _rule(self, rule: ordered.Rule) -> str:
        answer = await self._exchange.ask(ordered.TOPIC, rule.command_id, rule, replies.Ruled, self.timeout)
        return answer.said

    # --- waiting and fetching --------------------------------------------------------------------------------------

    async def wait(
        self,
        selector: Selector | Submission,
        progress: Callable[[Counts], None] | None = None,
        *,
        timeout: float | None = None,
    ) -> Counts:
        """Wait until all selected jobs have ended, and return the number of jobs in each state.

        Jobs that start after a failed job never end by themselves: where no others are left, they are counted as Held. `progress` is called
        with the counts at each poll. The call also waits while the broker is away. Raise Rejected if there is no such job, unless jobs
        are selected by state: then nothing is left to wait for. Raise Unavailable if some jobs had not ended within `timeout` seconds (None: no bound).
        """
        chosen = _selector(selector)
        counts = await counts_at_end(self, chosen, progress, timeout)
        # Jobs that are chosen by their state may have moved on.
        if not counts and not chosen.states:
            raise nothing_found(chosen)
        return counts

    async def watch(
        self, jobs: Selector | Submission, *, timeout: float | None = None
    ) -> AsyncGenerator[replies.JobLine, None]:
        """Yield the jobs as they are now, then each job whose state changes, until all have ended.

        If the broker lets this client read `wms.job.events`, changes are noticed at once; else the client polls every 0.2 to
        2 s. A job that changes state twice between two polls is yielded once, in its latest state. Raise Unavailable if some
        jobs had not ended within `timeout` seconds (None: no bound).
        """
        selector = await pinned(self, _selector(jobs))
        if selector == Selector():
            return
        async with aclosing(JobWatch(self, self.events(selector), selector, timeout).changes()) as changes:
            async for job in changes:
                yield job

    def events(self, selector: Selector | None = None) -> JobEvents:
        """Return a context manager that reads job events and signals when a selected job changes its state.

        Only the ids of the selector count. If it is None or names no ids, changes of any job are signalled.
        """
        return JobEvents(self._exchange, selector.ids if selector else ())

    async def as_completed(
        self, jobs: Selector | Submission, *, timeout: float | None = None
    ) -> AsyncGenerator[replies.JobLine, None]:
        """Yield each job once when it has ended. Jobs that had ended before the call come first.

        Raise Unavailable if some jobs had not ended within `timeout` seconds (None: no bound).
        """
        told = set[int]()
        async with aclosing(self.watch(jobs, timeout=timeout)) as changes:
            async for job in changes:
                if job.state in ENDED and job.job_id not in told:
                    told.add(job.job_id)
                    yield job

    async def map(
        self,
        description: JobDescription,
        parameters: Mapping[str, Iterable[str | float]],
        *,
        id: str | None = None,
        timeout: float | None = None,
    ) -> AsyncGenerator[replies.JobLine, None]:
        """Submit an array with one job for each value of the parameters, and yield each ended job, in the order of the values.

        The lists in `parameters` have equal lengths. Calls with the same `id` submit nothing twice. Raise Unavailable if some jobs
        had not ended within `timeout` seconds (None: no bound).
        """
        check_description(description)
        lists = {**description.parameters, **{name: tuple(values) for name, values in parameters.items()}}
        taken = await self.submit(msgspec.structs.replace(description, parameters=lists), id=id)
        ended = dict[int, replies.JobLine]()
        order = iter(taken.job_ids())
        job_id = next(order, None)
        async with aclosing(self.as_completed(taken, timeout=timeout)) as jobs:
            async for job in jobs:
                ended[job.job_id] = job
                while job_id in ended:
                    yield ended.pop(job_id)
                    job_id = next(order, None)

    async def cancel(self, jobs: Selector | Submission, reason: str = "") -> replies.Controlled:
        """Kill the jobs of a selection or a submission. The answer names the jobs whose state forbids it."""
        return await self.kill(_selector(jobs), reason)

    async def outputs(
        self, jobs: Selector | Submission, dest: Path, *, overwrite: bool = False
    ) -> dict[int, Fetched | Rejected]:
        """Fetch the output sandbox of each job into the directory `dest`/ID, several at a time.

        Return, by job id, the fetched output, or the Rejected that says why there is none. If `overwrite` is True, files in an
        existing directory are replaced; if False, an existing directory is an error of its job.
        """
        gate = asyncio.Semaphore(FETCHES_AT_ONCE)

        async def one(job_id: int) -> Fetched | Rejected:
            async with gate:
                try:
                    return await self.output(job_id, dest / str(job_id), overwrite=overwrite)
                except Rejected as fault:
                    return fault

        found = [job.job_id async for job in self.jobs(_selector(jobs))]
        return dict(zip(found, await asyncio.gather(*map(one, found)), strict=True))

    async def output(self, job_id: int, dest: Path, *, overwrite: bool = False) -> Fetched:
        """Fetch the job's output sandbox into the directory `dest`, all of it or nothing.

        If `overwrite` is True, an existing `dest` is kept, and files of the same names are replaced. Raise Rejected if the
        job has no output sandbox, or if `dest` exists and `overwrite` is False.
        """
        digest = output_of(await self.show(job_id))
        return await fetch(self._store(job_id), job_id, digest, dest, overwrite=overwrite)

    async def results(self, jobs: Selector | Submission) -> list[dict[str, Any]]:
        """Return the jobs as rows of a table, by ascending id: `pandas.DataFrame(rows)`.

        A row has state, site, attempt, exit code, times, CPU time, memory, and `parameters.NAME` for each parameter of a job array.
        """
        return [result_row(job) async for job in self.jobs(_selector(jobs), results=True)]

    # --- below here: how -------------------------------------------------------------------------------------------

    async def _with_programs(self, jobs: Sequence[JobDescription]) -> Sequence[JobDescription]:
        """Upload the programs that are files of this machine, each once. Return the descriptions with references to them."""
        needed = [
            program_to_send(each) if isinstance(each, JobDescription) and not brings_files(each) else None
            for each in jobs
        ]
        sent = {path: await self.upload([path]) for path in dict.fromkeys(filter(None, needed))}
        return [
            msgspec.structs.replace(each, input_sandbox=(sent[path],)) if path else each
            for each, path in zip(jobs, needed, strict=True)
        ]

    def _store(self, job_id: int | None = None) -> Objects:
        """Return the sandbox store; through a gateway it gives only the output of the job `job_id`.

        Raise Rejected if the settings name no store.
        """
        if (remote := self._exchange.sandboxes(job_id)) is not None:
            return remote
        if self.settings.sandboxes is None:
            raise Rejected(
                "NO_STORE", "this system's settings name no sandbox store", "set url in [sandboxes]"
            )
        return open_store(self.settings.sandboxes.address)


def _selector(jobs: Selector | Submission) -> Selector:
    return jobs.selector() if isinstance(jobs, Submission) else normalised(jobs)
