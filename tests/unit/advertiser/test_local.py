"""The provider of this machine."""

import shutil

from services.advertiser.config import LocalElement
from services.advertiser.local import Local
from wms.runtime.machine import Machine

MACHINE = Machine(cores=8, memory_mb=16_000, load=1.5, platforms=("Linux-x86_64",))


async def test_a_machine_counts_jobs_unless_it_is_told_not_to():
    elements = [
        LocalElement(
            site="glasgow", slots=16, tags=["gpu"], vos=["lhcb"], count_jobs=False, pilot_type="night"
        ),
        LocalElement(site="glasgow", ce="shared", max_jobs=4),
    ]
    processes = [*({"WMS_JOB_ID": str(n), "WMS_PILOT": "p-1"} for n in range(3)), {"WMS_PILOT": "p-2"}]
    local = Local(elements, look=lambda: MACHINE, processes=lambda: processes)
    own, shared = await local.read()
    assert (own.offer.slots, own.offer.current_jobs, own.offer.memory_mb) == (16, 0, 8_000)
    assert (own.offer.pilot_type, shared.offer.pilot_type) == ("night", "")
    assert own.glue.access_rules == ("VO:lhcb",)
    assert (shared.offer.current_jobs, shared.offer.current_submitting_jobs) == (4, 1)
    assert (shared.glue.running_jobs, shared.glue.waiting_jobs, shared.glue.total_jobs) == (3, 1, 4)
    assert shared.glue.lrms_type == "fork"


async def test_a_machine_tells_the_free_disk_of_its_pilots(tmp_path):
    elements = [
        LocalElement(site="glasgow", directory=str(tmp_path)),
        LocalElement(site="glasgow", ce="told", directory=str(tmp_path), disk_mb=7),
        LocalElement(site="glasgow", ce="unknown"),
    ]
    found = await Local(elements, look=lambda: MACHINE, processes=list).read()
    measured, told, unknown = [each.offer.disk_mb for each in found]
    assert 0 < measured <= shutil.disk_usage(tmp_path).total // 2**20
    assert (told, unknown) == (7, 0)
