"""Jobs and sites of simulations."""

from wms.matching.grouping import Requirements, processor_tags, segment
from wms.simulation.scenario import SiteRules
from wms.simulation.workload import WorkloadJob


def job(at, run=100.0, *, owner="ann", group="g", vo="v", site="s", cores=1, cpu=100, memory=0, priority=1.0):
    asked = Requirements(
        owner=owner,
        owner_group=group,
        vo=vo,
        setup="",
        cpu_segment=segment(cpu),
        sites=(site,) if site else (),
        tags=processor_tags(cores),
        min_ram_mb=memory,
    )
    return WorkloadJob(at=at, requirements=asked, run_seconds=run, user_priority=priority, site=site)


def site(name="s", slots=1, **rest):
    return SiteRules(site=name, slots=slots, **rest)
