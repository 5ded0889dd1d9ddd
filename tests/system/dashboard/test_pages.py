"""The dashboard in a real browser, against a whole system: signing in, each page, live events, orders, and who can use it."""

import re

import pytest
from playwright.async_api import Page, expect

from tests.system.dashboard.conftest import AXE, DashboardSite, sign_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ADDRESSES = ("/", "/jobs", "/queues", "/sites", "/sites/local", "/pilots?ended=true", "/usage", "/submit")
AUDIT = """async () => {
    const found = await axe.run(document, { resultTypes: ["violations"] });
    return found.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target).join(", ")}: ${each.help}`);
}"""


async def job_row(page: Page, job_id: int) -> None:
    await expect(page.locator(f'a[href="/jobs/{job_id}"]')).to_be_visible()


async def test_the_address_hands_the_token_over_and_forgets_it(page: Page, site: DashboardSite) -> None:
    await sign_in(page, site)
    assert page.url == f"{site.url}/"
    assert await page.evaluate("sessionStorage['wms.token']") == site.token
    assert site.token not in await page.evaluate("JSON.stringify(localStorage) + document.cookie")
    await expect(page.get_by_role("heading", name="Groups and sweeps")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Or paste a token")).to_be_visible()
    assert await page.evaluate("sessionStorage['wms.token']") is None


async def test_a_token_may_be_pasted_and_a_bad_one_is_refused(page: Page, site: DashboardSite) -> None:
    await page.goto(site.url)
    await page.get_by_label("Or paste a token").fill("a.b.c")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("refused")
    await page.get_by_label("Or paste a token").fill(f"  {site.token} ")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("live", exact=True)).to_be_visible()


async def test_the_first_page_tells_progress_failures_and_services(page: Page, site: DashboardSite) -> None:
    failed = await site.submit("exit 3", job_group="nightly", name="breaks")
    await site.ended(failed)
    await site.submit("sleep 600", job_group="nightly", array=4, name="long-{n}")
    await site.submit("true", memory_mb=8_000_000, name="too large")
    await sign_in(page, site)
    failures = page.get_by_role("region", name="Failures")
    await expect(failures.get_by_text("EXIT_CODE")).to_be_visible(timeout=60_000)
    progress = page.get_by_role("region", name="Groups and sweeps")
    await expect(progress.get_by_role("link", name="nightly")).to_be_visible()
    await expect(progress.get_by_text("of 5")).to_be_visible()
    await expect(page.get_by_role("region", name="Waiting").get_by_text("NEVER_POSSIBLE")).to_be_visible(
        timeout=60_000
    )
    services = page.get_by_role("region", name="Services")
    await expect(services.get_by_role("cell", name="matcher")).to_be_visible()
    await expect(page.get_by_role("region", name="Sites").get_by_role("link", name="local")).to_be_visible()
    await failures.get_by_role("link", name=re.compile("Log of job")).first.click()
    await expect(page.get_by_role("heading", name="Log")).to_be_visible()


async def test_an_event_is_on_the_screen_long_before_the_list_is_asked_for_again(
    page: Page, site: DashboardSite
) -> None:
    await sign_in(page, site, "/jobs")
    await expect(page.get_by_text("live", exact=True)).to_be_visible()
    job_id = await site.submit("sleep 600")
    await job_row(page, job_id)
    row = page.get_by_role("row").filter(has=page.locator(f'a[href="/jobs/{job_id}"]'))
    await site.ask("POST", "/orders", {"action": "kill", "selection": {"jobs": str(job_id)}})
    await expect(row.get_by_role("cell", name="Killed", exact=True)).to_be_visible(timeout=5_000)


async def test_filters_are_in_the_address(page: Page, site: DashboardSite) -> None:
    wanted = await site.submit("true", name="filtered-one", array=2)
    other = await site.submit("true", name="another")
    await sign_in(page, site, "/jobs")
    await job_row(page, other)
    await page.get_by_label("Name").fill("filtered-*")
    await page.wait_for_url("**/jobs?name=filtered-*")
    await job_row(page, wanted)
    await expect(page.locator(f'a[href="/jobs/{other}"]')).to_have_count(0)
    await page.reload()
    await job_row(page, wanted)
    await expect(page.get_by_label("Name")).to_have_value("filtered-*")
    await expect(page.locator(f'a[href="/jobs/{other}"]')).to_have_count(0)


async def test_an_order_says_first_how_many_jobs_it_is_about(page: Page, site: DashboardSite) -> None:
    first = await site.submit("sleep 600", name="doomed", array=3, memory_mb=8_000_000)
    await sign_in(page, site, "/jobs?name=doomed")
    await job_row(page, first)
    await page.get_by_role("button", name="Kill …").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("3 jobs: 3 Waiting")
    await dialog.get_by_role("button", name="Kill 3 jobs").click()
    await expect(dialog).to_contain_text("3 jobs changed")
    await dialog.get_by_role("button", name="Close").click()
    await expect(page.get_by_text("3 jobs: 3 Killed")).to_be_visible()


async def test_a_job_shows_its_timeline_log_and_attempts(page: Page, site: DashboardSite) -> None:
    job_id = await site.submit("echo said; sleep 2; echo more", name="talks")
    await sign_in(page, site, f"/jobs/{job_id}")
    await expect(page.get_by_role("heading", name=re.compile(f"Job {job_id}"))).to_contain_text(
        "Done", timeout=60_000
    )
    await expect(page.get_by_label(f"stdout of job {job_id}")).to_contain_text("more")
    await expect(page.get_by_role("img", name=re.compile("^Timeline: "))).to_be_visible()
    await expect(
        page.get_by_role("region", name="Attempts").get_by_role("link", name="local")
    ).to_be_visible()


async def test_the_form_checks_before_it_sends(page: Page, site: DashboardSite) -> None:
    await sign_in(page, site, "/submit")
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.url) if each.method == "POST" else None)
    await page.get_by_label("Memory").fill("-1")
    await page.get_by_role("button", name=re.compile("^Submit")).click()
    await expect(page.get_by_text("name the program to run")).to_be_visible()
    await expect(page.get_by_text("a whole number from 1")).to_be_visible()
    await expect(page.get_by_label("Program")).to_be_focused()
    assert not sent
    await page.get_by_label("Memory").fill("")
    await page.get_by_label("Program").fill("echo")
    await page.get_by_label("Arguments").fill('hello "two words" {n}')
    await page.get_by_label("Array").fill("3")
    await page.get_by_role("button", name="Submit 3 jobs").click()
    await expect(page.get_by_text("Submitted.")).to_be_visible()
    await page.locator(".taken a").click()
    await expect(page.get_by_text("3 jobs:")).to_be_visible()


async def test_what_the_services_refuse_is_told_with_its_remedy(page: Page, site: DashboardSite) -> None:
    await sign_in(page, site, "/submit")
    await page.get_by_label("Program").fill("true")
    await page.get_by_label("Sites").fill("nowhere")
    await page.get_by_role("button", name="Submit 1 job").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await sign_in(page, site, "/jobs/99999999")
    await expect(page.get_by_role("alert").first).to_contain_text("there is no job 99999999")


async def test_jobs_are_reached_by_the_keyboard_alone(page: Page, site: DashboardSite) -> None:
    older = await site.submit("true", name="keys-1")
    newer = await site.submit("true", name="keys-2")
    await sign_in(page, site, "/jobs?name=keys-*")
    await job_row(page, newer)
    table = page.get_by_role("table", name=re.compile("^Jobs"))
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await table.evaluate("(each) => each === document.activeElement"):
            break
    await page.keyboard.press("x")
    await expect(page.get_by_role("checkbox", name=f"Select job {newer}")).to_be_checked()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"**/jobs/{older}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing(page: Page, site: DashboardSite, scheme: str) -> None:
    job_id = await site.submit("echo x")
    await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type] # the values above
    await page.goto(site.url)
    found = {"sign-in": await audited(page)}
    for address in (*ADDRESSES, f"/jobs/{job_id}"):
        await sign_in(page, site, address)
        await expect(page.get_by_text("Loading …")).to_have_count(0)
        found[address] = await audited(page)
        await page.evaluate("sessionStorage.clear()")
    assert {address: faults for address, faults in found.items() if faults} == {}


async def audited(page: Page) -> list[str]:
    await page.evaluate(AXE.read_text())
    return list(await page.evaluate(AUDIT))


async def test_a_phone_scrolls_no_page_sideways(page: Page, site: DashboardSite) -> None:
    job_id = await site.submit("echo x", name="a-name-that-is-rather-long-for-a-small-screen" * 3)
    await page.set_viewport_size({"width": 375, "height": 740})
    wide = []
    for address in (*ADDRESSES, f"/jobs/{job_id}"):
        await sign_in(page, site, address)
        await expect(page.get_by_text("Loading …")).to_have_count(0)
        width = await page.evaluate(
            "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
        )
        if width > 375:
            wide.append((address, width))
        await page.evaluate("sessionStorage.clear()")
    assert wide == []


async def test_the_narrowest_phone_shows_all_links_and_the_expected_end(
    page: Page, site: DashboardSite
) -> None:
    await site.submit("sleep 1", array=1_000, job_group="a-group-with-a-long-name")
    await page.set_viewport_size({"width": 360, "height": 740})
    await sign_in(page, site)
    for each in (page.get_by_role("link", name="Submit", exact=True), page.get_by_text("Expected end")):
        await expect(each).to_be_in_viewport(ratio=1)


async def test_there_is_a_page_for_addresses_that_lead_nowhere(page: Page, site: DashboardSite) -> None:
    await sign_in(page, site, "/sites/nowhere")
    await expect(page.get_by_role("alert").first).to_be_visible()
