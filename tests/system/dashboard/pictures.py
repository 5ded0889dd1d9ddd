"""`python -m tests.system.dashboard.pictures DIRECTORY`: a busy system, and pictures of its dashboard; docs/dashboard has some of them."""

import asyncio
import sys
import tempfile
from pathlib import Path

import aiohttp
from playwright.async_api import Page, async_playwright

from tests.system.dashboard.conftest import CHROMIUM, FLAGS, DashboardSite, sign_in
from wms.embedded.system import System

SHOTS = {
    "overview": "/",
    "jobs": "/jobs?group=reco-2026a",
    "job": "",
    "queues": "/queues",
    "sites": "/sites",
    "site": "/sites/local",
    "pilots": "/pilots",
    "usage": "/usage",
    "submit": "/submit",
}
WARM_SECONDS = 45


async def busy(site: DashboardSite) -> int:
    """Submit what an operator might see on a day. Return a job that prints."""
    await site.ask("PUT", "/limits", {"site": "local", "attribute": "owner", "value": "*", "most": 8})
    await site.submit("sleep 0.2", job_group="calibration", array=60, name="calib-{n}")
    await site.submit("sleep 1; [ $(({n} % 9)) -gt 0 ]", job_group="reco-2026a", array=1200, name="reco-{n}")
    await site.submit("sleep 2; [ {n} -lt 40 ] || exit 3", name="mc-{n}", array=300)
    await site.submit("sleep 600", job_group="large", array=12, memory_mb=4_000_000, name="merge-{n}")
    await site.submit("sleep 1", job_group="gpu-training", array=40, tags=["gpu"], name="train-{n}")
    await site.ask("POST", "/jobs?hold=true", {"executable": "true", "job_group": "review", "array": 8})
    return await site.submit(
        "for i in $(seq 1 12); do echo event $i of 12 reconstructed; sleep 1; done; exit 3",
        name="reco-debug",
        priority=10,
    )


async def taken(page: Page, site: DashboardSite, job_id: int, directory: Path) -> None:
    """Take each picture in both themes, and some on a phone."""
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        for name, address in SHOTS.items():
            await sign_in(page, site, address or f"/jobs/{job_id}")
            await page.wait_for_timeout(1_500)
            await page.screenshot(path=directory / f"{name}-{scheme}.png")
    await page.set_viewport_size({"width": 390, "height": 844})
    for name in ("overview", "jobs", "job"):
        await sign_in(page, site, SHOTS[name] or f"/jobs/{job_id}")
        await page.wait_for_timeout(1_500)
        await page.screenshot(path=directory / f"{name}-phone.png")


async def main(directory: Path) -> None:
    """Run the system, let it work for a while, and take the pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wms-pictures-") as root:
        async with (
            System(Path(root) / "data", durable=False, log_level="warning", slots=6) as system,
            aiohttp.ClientSession() as session,
            async_playwright() as playwright,
        ):
            site = DashboardSite(system, session)
            job_id = await busy(site)
            await asyncio.sleep(WARM_SECONDS)
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = await browser.new_page(viewport={"width": 1280, "height": 860}, locale="en-GB")
            await taken(page, site, job_id, directory)
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
