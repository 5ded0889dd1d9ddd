"""A whole system with some jobs, and a browser in front of its dashboard; skipped where there is no browser or nothing was built."""

import shutil
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from services.gateway.dashboard_files import BUILT
from tests.waiting import eventually
from wms.embedded.system import System

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = BUILT.parent / "node_modules" / "axe-core" / "axe.min.js"


class DashboardSite:
    """A running system, and requests to its gateway under its user's token."""

    def __init__(self, system: System, session: aiohttp.ClientSession) -> None:
        self.url = system.gateway_url
        self.token = system.layout.user_token.read_text().strip()
        self._session = session

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self._session.request(
            method, f"{self.url}/api/v1{path}", json=body, headers=headers
        ) as answer:
            found = await answer.json(content_type=None)
            assert answer.status < 300, found
            return found

    async def submit(self, script: str = "true", **more: Any) -> int:
        """Submit a job, or with `array` several, of a line of shell. Return the first id."""
        job = {"executable": "sh", "arguments": ["-c", script], **more}
        return int((await self.ask("POST", "/jobs", job))["ids"][0][0])

    async def ended(self, job_id: int) -> None:
        """Wait until a job has ended."""

        async def state() -> bool:
            counts = (await self.ask("GET", f"/jobs/counts?jobs={job_id}&state=ended"))["counts"]
            return bool(counts)

        await eventually(state, within=90)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    if CHROMIUM is None:
        pytest.skip("NO BROWSER: `apt-get install chromium` brings the one that these tests need")
    if not (BUILT / "index.html").is_file() or not AXE.is_file():
        pytest.skip("NO DASHBOARD: `make dashboard` builds it")
    root = tmp_path_factory.mktemp("dashboard")
    async with (
        System(root, durable=False, log_level="warning", slots=2) as system,
        aiohttp.ClientSession() as session,
    ):
        yield DashboardSite(system, session)


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def free_slots(site: DashboardSite) -> AsyncIterator[None]:
    """Kill what a test has left, so that the jobs of the next one find free slots."""
    yield
    await site.ask("POST", "/orders", {"action": "kill", "selection": {"everything": True}})


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser(site: DashboardSite) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        await browser.close()


class Sight:
    """What a page did that it must not: requests to other hosts, and errors, among which are refusals of the page's policy."""

    def __init__(self, page: Page, host: str) -> None:
        self.strange: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda each: self._asked(each.url, host))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)

    def _asked(self, url: str, host: str) -> None:
        if urlsplit(url).netloc != host and not url.startswith(("data:", "blob:")):
            self.strange.append(url)


@pytest_asyncio.fixture(loop_scope="session")
async def page(site: DashboardSite, browser: Browser) -> AsyncIterator[Page]:
    """A tab that nobody has signed in to; whatever it did wrong fails the test."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    page = await context.new_page()
    page.set_default_timeout(15_000)
    sight = Sight(page, urlsplit(site.url).netloc)
    yield page
    await context.close()
    assert not sight.strange
    # A refusal is an answer that a page shows; the browser counts it as an error of its own.
    assert [each for each in sight.errors if "Failed to load resource" not in each] == []


async def sign_in(page: Page, site: DashboardSite, path: str = "/") -> None:
    """Open an address of the dashboard as `wms open` does."""
    await page.goto(f"{site.url}{path}#token={site.token}")
    await page.locator("header").wait_for()
