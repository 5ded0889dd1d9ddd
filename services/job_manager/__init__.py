"""The job manager: takes submissions, control and reports; keeps the job state machine; takes expired leases back."""
