"""The variables that Slurm sets in a batch script: those that the node tells, and those that stand for what is not known here."""

from typing import Final

AT_THE_NODE: Final = {
    "SLURM_JOB_ID": "$WMS_JOB_ID",
    "SLURM_JOBID": "$WMS_JOB_ID",
    "SLURM_SUBMIT_DIR": "$PWD",
    "SLURM_JOB_NODELIST": "$(uname -n)",
    "SLURM_NODELIST": "$(uname -n)",
    "SLURMD_NODENAME": "$(uname -n)",
    "SLURM_RESTART_COUNT": "$((WMS_EPOCH - 1))",
    "SLURM_TMPDIR": "$TMPDIR",
    "SLURM_TASK_PID": "$$",
}
"""The variables whose values only the node knows, each as a word of the shell. The directory of the job stands for that of the submission."""
OF_ARRAYS: Final = frozenset(
    {
        "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MAX", "SLURM_ARRAY_TASK_MIN",
        "SLURM_ARRAY_TASK_STEP",
    }
)  # fmt: skip
"""The variables of the tasks of an array."""
ABSENT: Final = frozenset(
    {
        "SLURM_CPUS_PER_TASK", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE",
        "SLURM_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_JOB_DEPENDENCY",
    }
)  # fmt: skip
"""The variables that Slurm does not set either if their option is not given."""
_WHERE: Final = {
    "SLURM_SUBMIT_HOST": "the machine of the submission is not known to the job",
    "SLURM_JOB_PARTITION": "there are no partitions here",
    "SLURM_JOB_ACCOUNT": "there are no accounts here",
    "SLURM_JOB_QOS": "there are no qualities of service here",
    "SLURM_CLUSTER_NAME": "the cluster is known as WMS_SITE",
    "SLURM_JOB_GPUS": "the devices are known as CUDA_VISIBLE_DEVICES",
}


def known(name: str) -> str:
    """Return why a variable that a script uses is not set here."""
    return f"is not set here: {_WHERE.get(name, 'its value is not known')}"
