"""The job manager: accepts submissions, carries out orders on jobs, applies pilots' reports, and takes jobs back when leases expire."""
