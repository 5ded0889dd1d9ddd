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


def same_here(word: str) -> str:
    """Return what does here what a command of another system, or a plain word, does; empty if the word is unknown."""
    known = {name: ours for table in (PLAIN, *SYSTEMS.values()) for name, ours in table.items()}
    return known.get(word.lower(), "")
