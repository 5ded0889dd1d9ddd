"""Jobs that are changed, and new ones made from old ones, by the command line and by the Python client."""

from pathlib import Path

import pytest

from tests.conftest import execute
from tests.system.place import Place, owner, place
from tests.system.test_cli import Shell, shell
from wms.client import Client, JobDescription, Rejected, select
from wms.demo.run import first_failure

__all__ = ["owner", "place", "shell"]


async def test_jobs_are_edited_by_the_options_of_submit(shell: Shell, tmp_path: Path) -> None:
    assert await shell.run("submit", "--memory", "100M", "--site", "A", "--", "true") == 0
    job = shell.out.strip()
    more = tmp_path / "more.txt"
    more.write_text("x")
    words = ("--memory", "2GiB", "--unset", "site", "--input", str(more), "--priority", "9")
    assert await shell.run("edit", job, *words, "--reason", "too small") == 0, shell.err
    assert shell.out == "1 job edited\n"
    shown = await shell.json("logs", job)
    description = shown["description"]
    assert (description["memory_mb"], description["priority"]) == (2048, 9)
    assert "sites" not in description
    assert len(description["input_sandbox"]) == 1
    assert shown["history"][-2]["text"].startswith("too small; ")
    assert await shell.run("edit", "--state", "Waiting", "--disk", "1G", "--json") == 0
    assert await shell.run("edit", "999999", "--disk", "1G") == 3
    assert await shell.run("hold", job) == 0
    assert await shell.run("reschedule", job, "--memory", "3G") == 1
    assert "wms edit" in shell.err
    await shell.run("kill", job)
    assert await shell.run("edit", job, "--memory", "3G") == 1
    assert "--retry-of" in shell.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing is to change"),
        (("--memory", "0"), "--memory: must be from 1"),
        (("--priority", "11"), "--priority: must be from 0 to 10"),
        (("--unset", "name"), "names nothing that can be unset"),
        (("--unset", "memory", "--memory", "1G"), "stands beside its option"),
        (("--input", "not-here"), "not-here"),
    ],
)
async def test_what_is_wrong_with_an_edit_is_told_by_its_option(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    assert await shell.run("edit", "1", *words) == 2
    assert message in shell.err


async def test_new_jobs_are_made_from_old_ones(shell: Shell) -> None:
    words = (
        "--param",
        "v=a,b",
        "--name",
        "s{v}",
        "--env",
        "X={v}",
        "--memory",
        "1G",
        "--",
        "echo",
        "{v}",
        "{n}",
    )
    assert await shell.run("submit", *words) == 0
    first, last = shell.out.strip().split("-")
    await shell.run("kill", f"{first}-{last}")
    more = ("--memory", "2G", "--env", "Y=1", "--id", "anew")
    assert await shell.run("submit", "--retry-of", f"{first}-{last}", *more) == 0, shell.err
    ids = shell.out.strip()
    assert await shell.run("submit", "--retry-of", f"{first}-{last}", *more) == 0
    assert shell.out.strip() == ids, "the same id submits nothing twice"
    shown = await shell.json("logs", ids.split("-")[1])
    description = shown["description"]
    assert (description["arguments"], description["environment"]) == (["b", "1"], {"X": "b", "Y": "1"})
    assert (description["memory_mb"], shown["job"]["name"], shown["array_index"]) == (2048, "sb", None)
    assert (await shell.json("submit", "--retry-of", last, "--dry-run"))["jobs"] == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--retry-of", "999999"), 3, "no such job"),
        (("--retry-of", "x"), 2, "x"),
        (("--retry-of", "1", "--array", "5"), 2, "no sweep"),
        (("--retry-of", "1", "--", "true"), 2, "what to run"),
    ],
)
async def test_what_cannot_be_retried_is_told(
    shell: Shell, words: tuple[str, ...], code: int, message: str
) -> None:
    assert await shell.run("submit", *words) == code
    assert message in shell.err


async def test_the_client_changes_jobs_and_tells_what_is_wrong_before_it_sends(
    place: Place, owner: str
) -> None:
    async with Client.connect(place.settings(owner)) as client:
        (job_id,) = (await client.submit(JobDescription(executable="true", tags=("gpu",)))).job_ids()
        done = await client.edit(select(job_id), {"memory_mb": 500, "tags": ()}, "no gpu needed")
        assert done.changed == 1
        (description,) = await client.descriptions(select(job_id))
        assert (description.memory_mb, description.tags) == (500, ())
        for wrong in ({"memory_mb": -1}, {"arguments": ["x"]}, {}):
            with pytest.raises(Rejected, match="DESCRIPTION_INVALID"):
                await client.edit(select(job_id), wrong)
        again = await client.reschedule(select(job_id), changes={"disk_mb": 7})
        assert again.changed == 1
        assert (await client.descriptions(select(job_id)))[0].disk_mb == 7


async def test_the_first_job_that_goes_wrong_is_named(place: Place, owner: str) -> None:
    async with Client.connect(place.settings(owner)) as client:
        jobs = await client.submit([JobDescription(executable="true", name=f"j{n}") for n in range(3)])
        first, second, _ = jobs.job_ids()
        assert await first_failure(client, jobs) == ""
        await execute(place.postgres, f"update job set attempts = 1 where job_id = {second}")
        assert (await first_failure(client, jobs)).startswith(f"job {second} (j1) is Waiting")
        await client.kill(select(first), "no use")
        assert (await first_failure(client, jobs)).startswith(f"job {first} (j0) is Killed: KILLED_BY_USER")
