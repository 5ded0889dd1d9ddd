"""Which answers of submit tools count as refusals: those alone after which a job certainly does not exist."""

import pytest

from wms.dispatch.commands import ToolOutput
from wms.dispatch.refusals import SubmitRefused, raise_not_submitted
from wms.errors import Unavailable

SLURM = "sbatch: error: Batch job submission failed: "
DOUBTS = {
    "sbatch": [
        f"{SLURM}Socket timed out on send/recv operation",
        f"{SLURM}Unable to contact slurm controller (connect failure)",
        f"{SLURM}Zero Bytes were transmitted or received",
        f"{SLURM}Connection reset by peer",
        f"{SLURM}I/O error writing script/environment to file",
        f"{SLURM}Unexpected message received",
        f"{SLURM}Message receive failure",
        f"{SLURM}Slurm backup controller in standby mode",
        f"sbatch: error: Invalid feature specification\n{SLURM}Transport endpoint is not connected",
        "",
    ],
    "bsub": [
        "Failed in sending/receiving a message: Connection reset by peer. Job not submitted.",
        "Failed in an LSF library call: LIM is down; try later. Job not submitted.",
        "A socket operation has failed: Broken pipe. Job not submitted.",
        "Communication time out. Job not submitted.",
    ],
    "qsub": [
        "qsub: cannot connect to server away (errno=111) Connection refused",
        "qsub: End of File",
        "qsub: Batch protocol error",
        f"{SLURM}Connection timed out",
    ],
    "condor_submit": [
        "ERROR: Failed to commit job submission into the queue.",
        "ERROR: Failed to commit job submission into the queue.\nERROR: Failed to read the reply",
        "ERROR: Failed to connect to local queue manager\nCEDAR:6001:Failed to connect to <10.0.0.1:9618>",
        "ERROR: Can't find address of schedd away",
    ],
}
REFUSALS = {
    "sbatch": [
        f"{SLURM}Requested node configuration is not available",
        f"{SLURM}Invalid feature specification",
        f"{SLURM}Invalid account or account/partition combination specified",
        f"{SLURM}Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        f"sbatch: error: Socket timed out, retrying\n{SLURM}Invalid partition name specified",
        "sbatch: unrecognized option '--colour=red'\nTry \"sbatch --help\" for more information",
        "sbatch: error: Invalid --constraint specification",
    ],
    "bsub": [
        "Bad resource requirement syntax. Job not submitted.",
        "weekend: No such queue. Job not submitted.",
        "Request aborted by esub. Job not submitted.",
        "User cannot use the queue. Job not submitted.",
    ],
    "qsub": [
        "qsub: Unknown queue",
        "qsub: submit error (Job exceeds queue resource limits MSG=cannot satisfy queue max mem requirement)",
        "qsub: Job rejected by all possible destinations (check syntax, queue resources, ...)",
        f"{SLURM}Invalid qos specification",
    ],
    "condor_submit": [
        "ERROR: Failed to commit job submission into the queue.\nERROR: This pool does not accept jobs over a day.",
        "ERROR: Failed to parse command file (line 7).",
        "ERROR: Number of submitted jobs would exceed MAX_JOBS_PER_OWNER",
    ],
}


@pytest.mark.parametrize(("tool", "text"), [(tool, each) for tool, texts in DOUBTS.items() for each in texts])
def test_a_job_may_exist_after_any_answer_that_is_no_clear_refusal(tool: str, text: str) -> None:
    with pytest.raises(Unavailable):
        raise_not_submitted(tool, ToolOutput(1, b"", text.encode()))


@pytest.mark.parametrize(
    ("tool", "text"), [(tool, each) for tool, texts in REFUSALS.items() for each in texts]
)
def test_a_clear_refusal_says_why(tool: str, text: str) -> None:
    with pytest.raises(SubmitRefused) as why:
        raise_not_submitted(tool, ToolOutput(1, b"", text.encode()))
    assert str(why.value) == " ".join(text.split())


@pytest.mark.parametrize("tool", REFUSALS)
def test_a_tool_that_was_killed_leaves_it_open(tool: str) -> None:
    with pytest.raises(Unavailable):
        raise_not_submitted(tool, ToolOutput(-9, b"", REFUSALS[tool][0].encode()))
