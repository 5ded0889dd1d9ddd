"""A testbed of real middleware on one machine: Slurm clusters and an ARC computing element, without systemd.

`packages` says what must be installed, `daemons` starts and ends what runs, `slurm` and `arc` configure one site each,
`testbed` puts them together below one directory. It knows nothing of the system that is tested on it.
"""
