"""The words of other batch systems, and what does the same here: for advice on unknown commands, and a page of the guide."""

JOB = "`wms submit job.sh`"
LIVE = "`wms jobs --state live`"
PLAIN = {
    "cancel": "`wms kill ID`", "stop": "`wms kill ID` ends jobs, `wms down` the system", "terminate": "`wms kill ID`",
    "delete": "`wms kill ID` ends jobs, `wms rm ID` deletes them", "del": "`wms kill ID` ends jobs, `wms rm ID` deletes them",
    "remove": "`wms rm ID`", "list": "`wms jobs`", "ls": "`wms jobs`", "ps": LIVE, "queue": LIVE, "history": "`wms jobs --state ended`",
    "run": "`wms submit --wait -- PROGRAM`", "start": "`wms up` starts a system, `wms submit` a job", "info": "`wms show ID`",
    "log": "`wms logs ID`", "cat": "`wms logs ID`", "tail": "`wms logs ID --follow`", "peek": "`wms logs ID`",
    "get": "`wms output ID`", "fetch": "`wms output ID`", "download": "`wms output ID`", "retry": "`wms reschedule ID`",
    "resubmit": "`wms submit --retry-of ID`", "resume": "`wms release ID`", "suspend": "`wms hold ID`", "nodes": "`wms sites`",
    "hosts": "`wms sites`", "account": "`wms usage`",
}  # fmt: skip
"""Plain words for commands, each with what does that here."""
SYSTEMS = {
    "Slurm": {
        "sbatch": JOB, "squeue": LIVE, "srun": "`wms submit --wait -- PROGRAM`", "scancel": "`wms kill ID`",
        "sacct": "`wms jobs`, `wms show ID`, `wms usage`", "sinfo": "`wms sites`", "scontrol": "`wms show`, `hold`, `release`, `edit ID`",
        "sstat": "`wms show ID`", "seff": "`wms show ID`", "sprio": "`wms why ID`", "sshare": "`wms shares`",
        "sattach": "`wms logs ID --follow`", "sreport": "`wms usage`",
    },
    "HTCondor": {
        "condor_submit": "`wms submit job.sub`", "condor_q": LIVE, "condor_rm": "`wms kill ID`", "condor_hold": "`wms hold ID`",
        "condor_release": "`wms release ID`", "condor_history": "`wms jobs --state ended`", "condor_status": "`wms sites`, `wms pilots`",
        "condor_wait": "`wms wait ID`", "condor_tail": "`wms logs ID --follow`", "condor_qedit": "`wms edit ID`",
        "condor_prio": "`wms edit ID --priority N`", "condor_transfer_data": "`wms output ID`", "condor_userprio": "`wms shares`",
    },
    "Grid Engine and PBS": {
        "qsub": JOB, "qstat": LIVE, "qdel": "`wms kill ID`", "qhold": "`wms hold ID`", "qrls": "`wms release ID`",
        "qalter": "`wms edit ID`", "qacct": "`wms show ID`, `wms usage`", "qhost": "`wms sites`", "pbsnodes": "`wms sites`",
        "qrerun": "`wms reschedule ID`",
    },
    "LSF": {
        "bsub": "`wms submit -- PROGRAM`", "bjobs": LIVE, "bkill": "`wms kill ID`", "bstop": "`wms hold ID`", "bresume": "`wms release ID`",
        "bmod": "`wms edit ID`", "bhist": "`wms timeline ID`", "bpeek": "`wms logs ID`", "bhosts": "`wms sites`", "bqueues": "`wms queues`",
        "brequeue": "`wms reschedule ID`",
    },
    "DIRAC": {
        "dirac-wms-job-submit": "`wms submit job.jdl`", "dirac-wms-job-status": "`wms jobs ID`", "dirac-wms-job-kill": "`wms kill ID`",
        "dirac-wms-job-delete": "`wms rm ID`", "dirac-wms-job-get-output": "`wms output ID`", "dirac-wms-job-logging-info": "`wms timeline ID`",
        "dirac-wms-job-peek": "`wms logs ID`", "dirac-wms-job-reschedule": "`wms reschedule ID`", "dirac-wms-job-parameters": "`wms show ID`",
        "dirac-proxy-info": "`wms whoami`",
    },
    "ARC": {
        "arcsub": "`wms submit job.xrsl`", "arcstat": "`wms jobs ID`", "arckill": "`wms kill ID`", "arcget": "`wms output ID`",
        "arccat": "`wms logs ID`", "arcclean": "`wms rm ID`", "arcresub": "`wms submit --retry-of ID`", "arcinfo": "`wms sites`",
    },
}  # fmt: skip
"""The commands of other systems, each with what does that here."""

MANY_NODES = "a job runs on one node: `--processors N`, or `--whole-node`"
OPTIONS = {
    "--nodes": MANY_NODES, "-N": MANY_NODES, "--ntasks": "`--processors N`", "--ntasks-per-node": "`--processors N`",
    "--cpus-per-task": "`--processors N`", "-c": "`--processors N`", "--cpus": "`--processors N`", "--time": "`--wall-time 2h`",
    "-t": "`--wall-time 2h`", "--mem": "`--memory 2G`", "--mem-per-cpu": "`--memory 2G`, of all processors together", "--tmp": "`--disk 10G`",
    "--gres": "`--gpus N`", "--gpus-per-node": "`--gpus N`", "--partition": "`--site S` or `--ce CE`", "-p": "`--site S` or `--ce CE`",
    "--queue": "`--site S` or `--ce CE`", "-q": "`--site S` or `--ce CE`", "--nodelist": "`--requirements`", "--constraint": "`--tag T` or `--requirements`",
    "--job-name": "`--name NAME`", "-J": "`--name NAME`", "--dependency": "`--after ID`", "--export": "`--env NAME=VALUE`",
    "--exclusive": "`--whole-node`", "--begin": "`--hold`, then `wms release ID`", "--image": "`--container IMAGE`", "--stdout": "`wms logs ID`",
    "--signal": "SIGTERM comes first, and `--grace-time 2m` is the time after it", "--requeue": "`--max-attempts N`",
}  # fmt: skip
"""Options of other systems' commands that submit, each with what does that here."""


def same_option(word: str) -> str:
    """Return what `wms submit` has in place of an option of another system; empty if the option is unknown."""
    return OPTIONS.get(word.partition("=")[0], "")


def same_here(word: str) -> str:
    """Return what does here what a command of another system, or a plain word, does; empty if the word is unknown."""
    known = {name: ours for table in (PLAIN, *SYSTEMS.values()) for name, ours in table.items()}
    return known.get(word.lower(), "")
