"""Every element of JSDL and of the extensions that are read, and what becomes of it."""

from collections.abc import Mapping
from typing import Final

from wms.jobdesc.languages.jsdl import application, resources, staging
from wms.jobdesc.languages.translation import Element, elements_of

_GROUPS: Final = (
    "JobIdentification", "JobName", "JobProject", "Application", "POSIXApplication", "HPCProfileApplication", "SPMDApplication",
    "Resources", "DataStaging", "Sweep", "JobPreferences",
)  # fmt: skip
_UNREAD: Final = ("FileSystemType", "MountPoint")
TOLD: Final[Mapping[str, str]] = {
    "JobProject": "becomes `job_group`; a second one is refused",
    "Executable": "a staged file of that name is run from the directory of the job",
    "Input": "becomes `stdin`; `/dev/null` is the default",
    "WorkingDirectory": "only the directory of the job; others are refused",
    "MemoryLimit": "becomes `max_memory_mb`, rounded up",
    "NumberOfProcesses": "becomes `processors`, times the threads",
    "ProcessesPerHost": "fewer than there are processes are refused: a job runs on one host",
    "SPMDVariation": "the variations of MPI start the program by mpirun; others are refused",
    "CandidateHosts": "becomes `grid_ces`",
    "OperatingSystem": "Linux is any node; others become a requirement",
    "CPUArchitecture": "becomes a requirement",
    "FileSystem": "its mount point stands before the paths on it; WORKINGDIR, and SCRATCH without one, are the directory of the job",
    "TotalCPUCount": "becomes `processors`, or their least and greatest number",
    "IndividualCPUCount": "becomes `processors` if there is no total",
    "IndividualCPUTime": "becomes `cpu_time`, times the processors",
    "TotalPhysicalMemory": "the lower bound becomes `memory_mb`; an upper bound alone is refused",
    "IndividualPhysicalMemory": "the lower bound becomes `memory_mb`; an upper bound alone is refused",
    "TotalResourceCount": "more than one is refused",
    "Target": "the file is sent to its URI; without one it comes back",
    "Source": "the file is fetched from its URI",
    "CreationFlag": "`overwrite`, and `dontOverwrite` of inputs; others are refused",
    "DeleteOnTermination": "`false` is refused: the directory of the job is removed after its end",
    "Sweep": "of arguments, environment and name an array; of others up to 1,000 jobs; paths, and `substring` of them",
    "JobPreferences": "becomes `preferences`",
}
"""What becomes of elements that are not kept in the same words."""
OMITTED: Final = {
    **dict.fromkeys((*application.REMARKS, "JobAnnotation"), "is for people"),
}
"""The elements that are left out, since the job is the same without them."""
IMPOSSIBLE: Final = {
    **application.LEFT_OUT,
    "IndividualNetworkBandwidth": "no resource tells this",
    "any other": "is no element of JSDL, or an extension that is not known",
}
"""The elements without which the job may be another one."""
ELEMENTS: Final[Mapping[str, Element]] = elements_of(
    [*_GROUPS, *_UNREAD, *application.PARTS, *resources.PARTS, *staging.PARTS], TOLD, OMITTED, IMPOSSIBLE
)
